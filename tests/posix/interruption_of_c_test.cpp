// SPDX-License-Identifier: MIT
// What time limits, cancellation and closed descriptors do to calls of the C library.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "catch.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;

struct sockets {
  sockets() {
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    first = fd(ends[0]);
    second = fd(ends[1]);
  }
  fd first;
  fd second;
};

struct waiting_call {
  const char* name;
  std::function<long(int)> call;
};

const std::vector<waiting_call> calls{
    {"read",
     [](int fd) {
       char c = 0;
       return ::read(fd, &c, 1);
     }},
    {"recv",
     [](int fd) {
       char c = 0;
       return ::recv(fd, &c, 1, 0);
     }},
    {"poll",
     [](int fd) {
       pollfd entry{fd, POLLIN, 0};
       return long{::poll(&entry, 1, -1)};
     }},
    {"poll of two",
     [](int fd) {
       std::array<pollfd, 2> entries{{{fd, POLLIN, 0}, {fd, POLLPRI, 0}}};
       return long{::poll(entries.data(), 2, -1)};
     }},
    {"nanosleep",
     [](int) {
       const timespec long_span{100, 0};
       return long{::nanosleep(&long_span, nullptr)};
     }},
    {"usleep", [](int) { return long{::usleep(900'000)}; }},
};

}  // namespace

TEST_CASE("motet-posix: a time limit ends a call with ECANCELED, and is thrown afterwards") {
  for (const waiting_call& entry : calls) {
    CAPTURE(entry.name);
    run([&] {
      const sockets ends;
      long result = 0;
      int error = 0;
      const auto start = clock::now();
      CHECK(!move_on_after(10ms, [&] {
        result = entry.call(ends.first.get());
        error = errno;
        sleep_for(10s);
      }));
      CHECK(clock::now() - start < 800ms);
      CHECK(result == -1);
      CHECK(error == ECANCELED);
    });
  }
}

TEST_CASE("with_timeout() and with_deadline() report that the time limit ended a call of C code") {
  for (const waiting_call& entry : calls) {
    CAPTURE(entry.name);
    run([&] {
      const sockets ends;
      const auto wait = [&] { return entry.call(ends.first.get()); };
      CHECK_THROWS_AS(with_timeout(10ms, wait), timed_out);
      CHECK_THROWS_AS(with_timeout(10ms, [&] { wait(); }), timed_out);
      CHECK_THROWS_AS(with_deadline(clock::now(), [&](deadline&) { wait(); }), timed_out);
      int changed = 0;
      CHECK_THROWS_AS(with_timeout(10ms,
                                   [&]() -> int& {
                                     wait();
                                     return changed;
                                   }),
                      timed_out);
    });
  }
}

TEST_CASE("move_on_after() and the other scopes report that they ended a call of C code") {
  run([&] {
    const sockets ends;
    const auto wait = [&] { return calls.front().call(ends.first.get()); };
    CHECK(!move_on_after(5ms, wait).has_value());
    CHECK(!move_on_after(5ms, [&] { wait(); }));
    CHECK(move_on_after(5ms, wait, 7) == 7);
    const auto stopper = [&](auto stop) {
      return spin([stop] {
        sleep_for(5ms);
        stop();
      });
    };
    std::stop_source source;
    fiber<void> requester = stopper([&] { source.request_stop(); });
    CHECK(!move_on_when_stopped(source.get_token(), wait).has_value());
    cancel_scope scope;
    fiber<void> canceller = stopper([&] { scope.cancel(); });
    CHECK(!scope.call([&] { wait(); }));
  });
}

TEST_CASE("with_timeout() reports only the calls of C code that its own limit ended") {
  run([&] {
    const sockets ends;
    const auto wait = [&] { return calls.front().call(ends.first.get()); };
    bool inner_returned = false;
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   CHECK(with_timeout(10s, wait) == -1);
                                   inner_returned = true;
                                 }),
                    timed_out);
    CHECK(inner_returned);
    CHECK(with_timeout(10s, [&] { return move_on_after(5ms, wait).has_value(); }) == false);
    const auto text = [&] {
      wait();
      return std::string(100, 'x');
    };
    CHECK_THROWS_AS(with_timeout(5ms, text), timed_out);
    CHECK(with_timeout(10s, [] { return std::string(100, 'x'); }).size() == 100);
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   wait();
                                   throw std::runtime_error("the library's own error");
                                 }),
                    std::runtime_error);
    // A call that need not wait is not ended, so a late result counts.
    CHECK(with_deadline(clock::now() - 1s, [&] { return ::write(ends.first.get(), "x", 1); }) == 1);
  });
}

TEST_CASE("posix::deadline_as names the error of a time limit, but not of a cancellation") {
  run([] {
    const sockets ends;
    const posix::deadline_as limit(ETIMEDOUT);
    char byte = 0;
    int error = 0;
    CHECK(!move_on_after(5ms, [&] {
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      error = errno;
      sleep();
    }));
    CHECK(error == ETIMEDOUT);
    fiber<void> reader = spin([&] {
      const posix::deadline_as inner(ETIMEDOUT);
      const ssize_t size = ::read(ends.first.get(), &byte, 1);
      error = errno;
      CHECK(size == -1);
      snooze();
    });
    sleep_for(5ms);
    reader.cancel();
    CHECK_THROWS_AS(reader.await(), fiber_cancelled);
    CHECK(error == ECANCELED);
    CHECK_THROWS_AS(posix::deadline_as(0), std::invalid_argument);
  });
}

TEST_CASE("motet-posix: a call that need not wait goes on while an interruption is pending") {
  run([] {
    const sockets ends;
    CHECK(!move_on_after(1ms, [&] {
      char byte = 0;
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      CHECK(::write(ends.first.get(), "bye", 3) == 3);
      CHECK(::read(ends.second.get(), &byte, 1) == 1);
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      CHECK(errno == ECANCELED);
      CHECK(::close(::dup(ends.first.get())) == 0);
      sleep();
    }));
  });
}

TEST_CASE("motet-posix: an interrupted write() returns what it has written") {
  run([] {
    const sockets ends;
    const std::vector<char> block(4'000'000);
    ssize_t size = 0;
    CHECK(!move_on_after(20ms, [&] {
      size = ::write(ends.first.get(), block.data(), block.size());
      sleep();
    }));
    CHECK(size > 0);
    CHECK(size < 4'000'000);
  });
}

TEST_CASE("motet-posix: an exception raised in a fiber waits until its call has returned") {
  run([] {
    const sockets ends;
    int error = 0;
    fiber<void> reader = spin([&] {
      char byte = 0;
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      error = errno;
      snooze();
    });
    sleep_for(5ms);
    reader.raise(std::runtime_error("now"));
    CHECK_THROWS_AS(reader.await(), std::runtime_error);
    CHECK(error == ECANCELED);
  });
}

TEST_CASE("motet-posix: a library that retries for ever is reported, and ended with EBADF") {
  std::vector<std::string> notices;
  options config;
  config.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(config, [&] {
    const sockets ends;
    std::size_t others = 0;
    fiber<void> counter = spin({.transient = true}, [&] {
      for (;; ++others) snooze();
    });
    const auto retry = [&](std::size_t& count) {
      char byte = 0;
      for (count = 0; ::read(ends.first.get(), &byte, 1) < 0 && errno == ECANCELED;) ++count;
      return errno;
    };
    std::size_t first = 0;
    std::size_t second = 0;
    bool retries_again = false;
    int error = 0;
    fiber<void> stubborn = spin({.name = "stubborn"}, [&] {
      CHECK(!move_on_after(1ms, [&] {
        CHECK(retry(first) == EBADF);
        snooze();
      }));
      CHECK(::write(ends.second.get(), "x", 1) == 1);
      std::array<char, 2> buffer{};
      CHECK(::read(ends.first.get(), buffer.data(), 2) == 1);  // and none is pending
      retries_again = true;
      error = retry(second);
      snooze();
    });
    while (!retries_again) sleep_for(1ms);
    stubborn.cancel();
    CHECK_THROWS_AS(stubborn.await(), fiber_cancelled);
    CHECK(error == EBADF);
    CHECK(first >= 9'999);
    CHECK(second >= 1);
    CHECK(others >= first);
    counter.cancel();
  });
  REQUIRE(notices.size() >= 1);
  CHECK(notices[0].find("stubborn") != std::string::npos);
  CHECK(notices[0].find("interruption_of_c_test.cpp") != std::string::npos);
}

TEST_CASE("close() ends the calls of other fibers with EBADF") {
  run([] {
    sockets ends;
    int error = 0;
    fiber<void> reader = spin([&] {
      char byte = 0;
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      error = errno;
    });
    sleep_for(5ms);
    CHECK(::close(ends.first.release()) == 0);
    reader.await();
    CHECK(error == EBADF);
  });
}

TEST_CASE("connect() and accept() in a fiber") {
  run([] {
    const fd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), generic, length) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), generic, &length) == 0);
    fiber<void> server = spin([&] {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      const fd socket(::accept(listener.get(), reinterpret_cast<sockaddr*>(&peer), &size));
      CHECK(socket.get() >= 0);
      CHECK(size == sizeof peer);
      CHECK((::fcntl(socket.get(), F_GETFD) & FD_CLOEXEC) == 0);
      CHECK(::write(socket.get(), "hello", 5) == 5);
    });
    sleep_for(2ms);
    const fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    CHECK(::connect(socket.get(), generic, length) == 0);
    CHECK((::fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0);
    std::array<char, 8> buffer{};
    CHECK(::recv(socket.get(), buffer.data(), 5, MSG_WAITALL) == 5);
    server.await();
  });
}

TEST_CASE("connect() in a fiber waits for room in a backlog, within its limits") {
  run([] {
    const fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "motet-posix-" + std::to_string(::getpid());
    std::copy(name.begin(), name.end(), address.sun_path + 1);  // in the abstract namespace
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), generic, length) == 0);
    REQUIRE(::listen(listener.get(), 0) == 0);
    const fd first(::socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK(::connect(first.get(), generic, length) == 0);
    const fd second(::socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK(!move_on_after(20ms, [&] {
      CHECK(::connect(second.get(), generic, length) == -1);
      CHECK(errno == ECANCELED);
      sleep();
    }));
    const timeval limit{0, 20'000};
    REQUIRE(::setsockopt(second.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(::connect(second.get(), generic, length) == -1);
    CHECK(errno == EAGAIN);
    const timeval none{};
    REQUIRE(::setsockopt(second.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none) == 0);
    fiber<void> server = spin([&] {
      sleep_for(10ms);
      const fd accepted(::accept(listener.get(), nullptr, nullptr));
      CHECK(accepted);
    });
    CHECK(::connect(second.get(), generic, length) == 0);
    server.await();
  });
}

TEST_CASE("connect() in a fiber fails with the errors of a thread") {
  run([] {
    const fd unbound(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(unbound.get(), generic, length) == 0);  // but does not listen
    REQUIRE(::getsockname(unbound.get(), generic, &length) == 0);
    const fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    CHECK(::connect(socket.get(), generic, length) == -1);
    CHECK(errno == ECONNREFUSED);
    CHECK(::connect(-1, generic, length) == -1);
    CHECK(errno == EBADF);
    CHECK(::accept(socket.get(), nullptr, nullptr) == -1);
    CHECK(errno == EINVAL);
    const fd datagrams(::socket(AF_INET, SOCK_DGRAM, 0));
    CHECK(::connect(datagrams.get(), generic, length) == 0);
  });
}

TEST_CASE("accept() in a fiber keeps SO_RCVTIMEO") {
  run([] {
    const fd listener(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::listen(listener.get(), 1) == 0);
    const timeval limit{0, 20'000};
    REQUIRE(::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    const auto start = clock::now();
    CHECK(::accept(listener.get(), nullptr, nullptr) == -1);
    CHECK(errno == EAGAIN);
    CHECK(clock::now() - start >= 20ms);
  });
}

TEST_CASE("dup2() over a descriptor ends the calls of other fibers on it") {
  run([] {
    const sockets ends;
    const sockets others;
    int error = 0;
    fiber<void> reader = spin([&] {
      char byte = 0;
      CHECK(::read(ends.first.get(), &byte, 1) == -1);
      error = errno;
    });
    sleep_for(5ms);
    CHECK(::dup2(-1, ends.first.get()) == -1);
    CHECK(errno == EBADF);
    snooze();
    CHECK(error == 0);
    CHECK(::dup2(others.first.get(), ends.first.get()) == ends.first.get());
    reader.await();
    CHECK(error == EBADF);
    CHECK(::write(others.second.get(), "x", 1) == 1);
    char byte = 0;
    CHECK(::read(ends.first.get(), &byte, 1) == 1);
    CHECK(::dup3(ends.first.get(), ends.first.get(), 0) == -1);
    CHECK(errno == EINVAL);
  });
}

TEST_CASE("getaddrinfo() and getnameinfo() in a fiber let other fibers run, and find names") {
  run([] {
    addrinfo* list = nullptr;
    bool done = false;
    fiber<void> resolver = spin([&] {
      CHECK(::getaddrinfo("localhost", "80", nullptr, &list) == 0);
      done = true;
    });
    snooze();
    CHECK(!done);
    resolver.await();
    REQUIRE(list != nullptr);
    std::array<char, 64> host{};
    std::array<char, 64> service{};
    CHECK(::getnameinfo(list->ai_addr, list->ai_addrlen, host.data(), host.size(), service.data(),
                        service.size(), 0) == 0);
    CHECK(std::string(host.data()) != "");
    CHECK(std::string(service.data()) == "http");
    CHECK(::getnameinfo(list->ai_addr, list->ai_addrlen, host.data(), 2, nullptr, 0, 0) ==
          EAI_OVERFLOW);
    ::freeaddrinfo(list);
    addrinfo numeric{};
    numeric.ai_flags = AI_NUMERICHOST;
    CHECK(::getaddrinfo("no number", nullptr, &numeric, &list) == EAI_NONAME);
    CHECK(::getaddrinfo("127.0.0.1", "http?", nullptr, &list) == EAI_SERVICE);
  });
}

TEST_CASE("getaddrinfo() in a fiber leaves an interruption pending") {
  run([] {
    // A look-up that is quicker than the interruption finds that there is no such name.
    std::size_t interrupted = 0;
    const auto look_up = [&] {
      addrinfo* list = nullptr;
      const int code = ::getaddrinfo("name.invalid", nullptr, nullptr, &list);
      const int error = errno;
      CHECK(code != 0);
      if (code == EAI_SYSTEM && error == ECANCELED) ++interrupted;
      snooze();
    };
    for (int i = 0; i < 20; ++i) {
      fiber<void> resolver = spin(look_up);
      snooze();
      resolver.raise(std::system_error(std::make_error_code(std::errc::io_error)));
      CHECK_THROWS_AS(resolver.await(), std::system_error);
      resolver = spin(look_up);
      snooze();
      resolver.cancel();
      CHECK_THROWS_AS(resolver.await(), fiber_cancelled);
    }
    CHECK(interrupted > 0);
  });
}
