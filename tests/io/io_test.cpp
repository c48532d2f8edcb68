// SPDX-License-Identifier: MIT
// The blocking calls on raw descriptors: they block one fiber, can be interrupted, and then nothing
// is lost.
#include <netinet/in.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::one_byte;
using testing::oops;
using testing::read_text;
using testing::until_waiting;

namespace {

/// Lets completions that are there arrive.
void settle() {
  for (int i = 0; i < 200; ++i) snooze();
}

template <typename F>
bool ends_cancelled(F f) {
  try {
    f();
  } catch (const cancelled&) {
    return true;
  }
  return false;
}

}  // namespace

static_assert(noexcept(io::read(0, {}, std::declval<std::error_code&>())));
static_assert(noexcept(io::write(0, {}, std::declval<std::error_code&>())));
static_assert(noexcept(io::recv(0, {}, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::send(0, {}, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::accept(0, nullptr, nullptr, std::declval<std::error_code&>())));
static_assert(noexcept(io::connect(0, nullptr, 0, std::declval<std::error_code&>())));

TEST_CASE("io::read() blocks its fiber and no other", "[io]") {
  run([] {
    auto pipe = make_pipe();
    int steps = 0;
    auto reader = spin([&] { return read_text(pipe.first()); });
    until_waiting(reader);
    while (steps < 100) {
      snooze();
      ++steps;
    }
    CHECK(reader.state() == fiber_state::waiting);
    CHECK(io::write(pipe.second(), bytes_of("hello")) == 5);
    CHECK(reader.await() == "hello");
  });
}

TEST_CASE("io calls move bytes and connections with and without an error code", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    std::error_code error = std::make_error_code(std::errc::io_error);
    std::byte buffer[4];
    CHECK(io::write(pair.second(), bytes_of("ab"), error) == 2);
    CHECK_FALSE(error);
    error = std::make_error_code(std::errc::io_error);
    CHECK(io::read(pair.first(), buffer, error) == 2);
    CHECK_FALSE(error);
    CHECK(io::send(pair.second(), bytes_of("cd")) == 2);
    CHECK(io::recv(pair.first(), buffer) == 2);
    CHECK(io::send(pair.second(), bytes_of("ef"), 0, error) == 2);
    CHECK(io::recv(pair.first(), buffer, MSG_PEEK, error) == 2);
    CHECK(io::recv(pair.first(), buffer, 0, error) == 2);
    CHECK_FALSE(error);
    CHECK(testing::text_of(std::span(buffer).first(2)) == "ef");

    char head[2] = {'g', 'h'};
    char tail[3] = {'i', 'j', 'k'};
    const iovec sources[] = {{head, 2}, {tail, 3}};
    CHECK(io::writev(pair.second(), sources) == 5);
    const iovec targets[] = {{tail, 3}, {head, 2}};
    CHECK(io::readv(pair.first(), targets) == 5);
    CHECK(std::string(tail, 3) + std::string(head, 2) == "ghijk");

    const fd listener = testing::make_listener();
    const auto address = testing::loopback_address(testing::port_of(listener.get()));
    const auto* pointer = reinterpret_cast<const sockaddr*>(&address);
    auto acceptor = spin([&] {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      const fd first(io::accept(listener.get(), reinterpret_cast<sockaddr*>(&peer), &size));
      std::error_code second_error;
      const fd second(io::accept(listener.get(), nullptr, nullptr, second_error));
      return first && second && !second_error && size == sizeof peer;
    });
    const fd first = testing::make_tcp_socket();
    io::connect(first.get(), pointer, sizeof address);
    const fd second = testing::make_tcp_socket();
    io::connect(second.get(), pointer, sizeof address, error);
    CHECK_FALSE(error);
    CHECK(acceptor.await());
    CHECK(io::wait_fd(pair.first(), POLLIN | POLLOUT) == POLLOUT);
    io::shutdown(pair.second(), SHUT_WR);
    CHECK(io::read(pair.first(), buffer) == 0);
  });
}

TEST_CASE("io calls throw for an invalid or a closed descriptor", "[io]") {
  run([] {
    int old_number = -1;
    {
      const auto old_pair = make_socket_pair();
      old_number = old_pair.first();
    }
    const auto address = testing::loopback_address(1);
    const auto* pointer = reinterpret_cast<const sockaddr*>(&address);
    const iovec vector{one_byte, 1};
    const std::span vectors(&vector, 1);
    for (const int bad : {-1, old_number}) {
      INFO("descriptor " << bad);
      CHECK(error_of([&] { io::read(bad, one_byte); }) == bad_descriptor);
      CHECK(error_of([&] { io::write(bad, one_byte); }) == bad_descriptor);
      CHECK(error_of([&] { io::readv(bad, vectors); }) == bad_descriptor);
      CHECK(error_of([&] { io::writev(bad, vectors); }) == bad_descriptor);
      CHECK(error_of([&] { io::recv(bad, one_byte); }) == bad_descriptor);
      CHECK(error_of([&] { io::send(bad, one_byte); }) == bad_descriptor);
      CHECK(error_of([&] { io::accept(bad); }) == bad_descriptor);
      CHECK(error_of([&] { io::connect(bad, pointer, sizeof address); }) == bad_descriptor);
      CHECK(error_of([&] { io::wait_fd(bad, POLLIN); }) == bad_descriptor);
      CHECK(error_of([&] { io::shutdown(bad, SHUT_RD); }) == bad_descriptor);
      CHECK(error_of([&] { io::close(bad); }) == bad_descriptor);
      std::error_code error;
      CHECK(io::read(bad, one_byte, error) == 0);
      CHECK(error == bad_descriptor);
      error.clear();
      CHECK(io::write(bad, one_byte, error) == 0);
      CHECK(error == bad_descriptor);
      error.clear();
      CHECK(io::recv(bad, one_byte, 0, error) == 0);
      CHECK(error == bad_descriptor);
      error.clear();
      CHECK(io::send(bad, one_byte, 0, error) == 0);
      CHECK(error == bad_descriptor);
      error.clear();
      CHECK(io::accept(bad, nullptr, nullptr, error) == -1);
      CHECK(error == bad_descriptor);
      error.clear();
      io::connect(bad, pointer, sizeof address, error);
      CHECK(error == bad_descriptor);
    }
  });
}

TEST_CASE("io::wait_fd() rejects a mask that is empty or unknown", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    CHECK_THROWS_AS(io::wait_fd(pair.first(), 0), std::invalid_argument);
    CHECK_THROWS_AS(io::wait_fd(pair.first(), POLLHUP), std::invalid_argument);
    CHECK_THROWS_AS(io::wait_fd(pair.first(), POLLIN | POLLNVAL), std::invalid_argument);
    CHECK_THROWS_AS(io::wait_fd(-1, 0), std::invalid_argument);
    suspend();  // returns at once: nothing has been left pending
    CHECK(io::wait_fd(pair.first(), POLLOUT) == POLLOUT);
  });
}

TEST_CASE("io::wait_fd() reports urgent data, alone and beside other events", "[io]") {
  motet::run([] {
    for (const short events : {short{POLLPRI}, static_cast<short>(POLLPRI | POLLIN)}) {
      net::tcp_listener listener(net::endpoint::loopback(0));
      const net::tcp_stream client = net::tcp_stream::connect(listener.local_endpoint());
      const net::tcp_stream server = listener.accept();
      group tasks;
      tasks.spin([&] {
        sleep_for(1ms);
        CHECK(::send(client.native_handle(), "!", 1, MSG_OOB) == 1);
      });
      const short reported =
          with_timeout(5s, [&] { return io::wait_fd(server.native_handle(), events); });
      CHECK((reported & POLLPRI) != 0);
      CHECK((reported & ~events) == 0);
      tasks.await_all();
    }
  });
}

TEST_CASE("io::readv() and writev() reject too many buffers, recv() rejects MSG_WAITALL", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    const std::vector<iovec> many(2'000, iovec{one_byte, 1});
    CHECK_THROWS_AS(io::recv(pair.first(), one_byte, MSG_WAITALL), std::invalid_argument);
    std::error_code error;
    io::recv(pair.first(), one_byte, MSG_WAITALL, error);
    CHECK(error == std::errc::invalid_argument);
    CHECK_THROWS_AS(io::readv(pair.first(), many), std::invalid_argument);
    CHECK_THROWS_AS(io::writev(pair.first(), many), std::invalid_argument);
    CHECK(testing::take_all(pair.second()).empty());
  });
}

TEST_CASE("io calls with an empty buffer move nothing and do not wait", "[io]") {
  run([] {
    auto pipe = make_pipe();
    CHECK(io::read(pipe.first(), {}) == 0);
    CHECK(io::write(pipe.second(), {}) == 0);
    CHECK(io::readv(pipe.first(), {}) == 0);
    CHECK(io::writev(pipe.second(), {}) == 0);
  });
}

TEST_CASE("io::read() leaves its buffer and every byte alone when it is interrupted", "[io]") {
  run([] {
    for (const bool sockets : {false, true}) {
      auto pair = sockets ? make_socket_pair() : make_pipe();
      std::byte buffer[4] = {};
      auto reader = spin([&] { io::read(pair.first(), buffer); });
      until_waiting(reader);
      CHECK(reader.raise(oops()));
      CHECK_THROWS_AS(reader.await(), oops);
      CHECK(io::write(pair.second(), bytes_of("abc")) == 3);
      settle();
      CHECK(buffer[0] == std::byte{0});
      CHECK(read_text(pair.first()) == "abc");
    }
  });
}

TEST_CASE("io calls that wait end by an interruption", "[io]") {
  run([] {
    const fd listener = testing::make_listener();
    const fd busy = testing::make_listener(0, 0);
    const fd queued = testing::connect_to(testing::port_of(busy.get()));
    const auto address = testing::loopback_address(testing::port_of(busy.get()));
    auto empty = make_socket_pair();
    auto full = make_socket_pair();
    testing::fill(full.first());
    const iovec vector{one_byte, 1};
    const std::span vectors(&vector, 1);
    const std::vector<std::function<void()>> waits{
        [&] { io::read(empty.first(), one_byte); },
        [&] { io::readv(empty.first(), vectors); },
        [&] { io::recv(empty.first(), one_byte); },
        [&] { io::write(full.first(), one_byte); },
        [&] { io::writev(full.first(), vectors); },
        [&] { io::send(full.first(), one_byte); },
        [&] { io::accept(listener.get()); },
        [&] {
          const fd socket = testing::make_tcp_socket();
          io::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
        },
        [&] { io::wait_fd(empty.first(), POLLIN); },
    };
    for (std::size_t i = 0; i < waits.size(); ++i) {
      INFO("verb " << i);
      auto waiter = spin(waits[i]);
      until_waiting(waiter);
      settle();
      REQUIRE(waiter.state() == fiber_state::waiting);
      CHECK(waiter.cancel("enough") == cancel_result::accepted);
      CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
      CHECK_FALSE(move_on_after(1ms, waits[i]));
    }
  });
}

TEST_CASE("io::read() delivers a pending interruption on entry, and reads nothing", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    REQUIRE(::write(pair.second(), "x", 1) == 1);
    bool started = false;
    auto reader = spin([&] {
      for (;;) {
        try {
          suspend<int>();
        } catch (const oops&) {
          break;  // the second interruption is pending by now
        }
      }
      started = true;
      io::read(pair.first(), one_byte);
    });
    until_waiting(reader);
    CHECK(reader.raise(oops()));
    CHECK(reader.cancel() == cancel_result::accepted);
    CHECK_THROWS_AS(reader.await(), fiber_cancelled);
    CHECK(started);
    CHECK(read_text(pair.first()) == "x");
  });
}

TEST_CASE("io::read() returns a result that is there, and leaves the interruption pending",
          "[io]") {
  run([] {
    auto pair = make_socket_pair();
    std::string text;
    bool interrupted = false;
    auto reader = spin([&] {
      text = read_text(pair.first());
      interrupted = ends_cancelled([&] { io::write(pair.first(), bytes_of("never")); });
    });
    until_waiting(reader);
    settle();
    REQUIRE(::write(pair.second(), "x", 1) == 1);
    while (reader.state() == fiber_state::waiting) snooze();  // until the byte has arrived
    reader.cancel();
    CHECK_NOTHROW(reader.await());
    CHECK(text == "x");
    CHECK(interrupted);
    CHECK(testing::take_all(pair.second()).empty());
  });
}

TEST_CASE("io calls with an error code report an interruption and leave it pending", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    std::vector<std::error_code> errors;
    bool thrown = false;
    auto reader = spin([&] {
      std::error_code error;
      io::read(pair.first(), one_byte, error);
      errors.push_back(error);
      io::read(pair.first(), one_byte, error);
      errors.push_back(error);
      io::write(pair.first(), one_byte, error);
      errors.push_back(error);
      io::accept(pair.first(), nullptr, nullptr, error);
      errors.push_back(error);
      thrown = ends_cancelled([] { snooze(); });
    });
    until_waiting(reader);
    reader.cancel();
    reader.await();
    REQUIRE(errors.size() == 4);
    for (const std::error_code& error : errors) CHECK(error == std::errc::operation_canceled);
    CHECK(thrown);
    CHECK(testing::take_all(pair.second()).empty());
  });
}

TEST_CASE("io::read() ends at a deadline, and the next read has the bytes", "[io]") {
  run([] {
    auto pipe = make_pipe();
    CHECK_FALSE(move_on_after(2ms, [&] { return read_text(pipe.first()); }));
    io::write(pipe.second(), bytes_of("x"));
    const auto in_time = move_on_after(1h, [&] { return read_text(pipe.first()); });
    REQUIRE(in_time);
    CHECK(*in_time == "x");
  });
}

TEST_CASE("io::read() of two fibers gives each one of two bytes", "[io]") {
  run([] {
    for (const bool sockets : {false, true}) {
      auto pair = sockets ? make_socket_pair() : make_pipe();
      auto first = spin([&] { return read_text(pair.first(), 1); });
      auto second = spin([&] { return read_text(pair.first(), 1); });
      until_waiting(first);
      until_waiting(second);
      io::write(pair.second(), bytes_of("ab"));
      const std::string bytes = first.await() + second.await();
      CHECK((bytes == "ab" || bytes == "ba"));
    }
  });
}

TEST_CASE("io::read() that is cancelled leaves the byte to another reader", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    auto first = spin([&] { return read_text(pair.first(), 1); });
    auto second = spin([&] { return read_text(pair.first(), 1); });
    until_waiting(first);
    until_waiting(second);
    first.cancel();
    CHECK_THROWS_AS(first.await(), fiber_cancelled);
    io::write(pair.second(), bytes_of("x"));
    CHECK(second.await() == "x");
  });
}

TEST_CASE("io::read() and write() share a socket, a mebibyte each way", "[io]") {
  run([] {
    constexpr std::size_t total = std::size_t{1} << 20;
    for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
      auto pair = make_socket_pair(mode);
      const int flags = ::fcntl(pair.first(), F_GETFL);
      const auto send_all = [&](int fd, int seed) {
        std::vector<std::byte> block(10'000);
        for (std::size_t offset = 0; offset < total;) {
          const std::size_t size = std::min(block.size(), total - offset);
          for (std::size_t i = 0; i < size; ++i) {
            block[i] = static_cast<std::byte>((offset + i) * 31 + static_cast<std::size_t>(seed));
          }
          offset += io::write(fd, std::span(block).first(size));
        }
        return true;
      };
      const auto receive_all = [&](int fd, int seed) {
        std::vector<std::byte> block(7'000);
        std::size_t wrong = 0;
        for (std::size_t offset = 0; offset < total;) {
          const std::size_t size = io::read(fd, block);
          if (size == 0) return false;
          for (std::size_t i = 0; i < size; ++i) {
            const auto right =
                static_cast<std::byte>((offset + i) * 31 + static_cast<std::size_t>(seed));
            wrong += block[i] == right ? 0 : 1;
          }
          offset += size;
        }
        return wrong == 0;
      };
      group both_ways;
      auto first_sender = both_ways.spin([&] { return send_all(pair.first(), 1); });
      auto second_sender = both_ways.spin([&] { return send_all(pair.second(), 2); });
      auto first_receiver = both_ways.spin([&] { return receive_all(pair.second(), 1); });
      auto second_receiver = both_ways.spin([&] { return receive_all(pair.first(), 2); });
      both_ways.await_all();
      CHECK(first_sender.await());
      CHECK(second_sender.await());
      CHECK(first_receiver.await());
      CHECK(second_receiver.await());
      CHECK(::fcntl(pair.first(), F_GETFL) == flags);
    }
  });
}

TEST_CASE("io::write() throws broken_pipe without a signal if nobody reads", "[io]") {
  run([] {
    auto pipe = make_pipe();
    auto pair = make_socket_pair();
    pipe.close_first();
    pair.close_first();
    const auto code = std::errc::broken_pipe;
    const iovec vector{one_byte, 1};
    CHECK(error_of([&] { io::write(pipe.second(), one_byte); }) == code);
    CHECK(error_of([&] { io::writev(pipe.second(), std::span(&vector, 1)); }) == code);
    CHECK(error_of([&] { io::write(pair.second(), one_byte); }) == code);
    CHECK(error_of([&] { io::send(pair.second(), one_byte); }) == code);
    std::error_code error;
    CHECK(io::write(pipe.second(), one_byte, error) == 0);
    CHECK(error == code);
  });
}

TEST_CASE("io::write() that waits ends when its reader goes", "[io]") {
  run([] {
    auto pipe = make_pipe();
    testing::fill(pipe.second());
    auto writer = spin([&] { return error_of([&] { io::write(pipe.second(), one_byte); }); });
    until_waiting(writer);
    pipe.close_first();
    CHECK(writer.await() == std::errc::broken_pipe);
  });
}

TEST_CASE("io calls name the call and the descriptor in their errors", "[io]") {
  run([] {
    auto pipe = make_pipe();
    std::string text;
    try {
      io::recv(pipe.first(), one_byte);
    } catch (const std::system_error& refused) {
      CHECK(refused.code() == std::errc::not_a_socket);
      text = refused.what();
    }
    CHECK(text.find("recv") != std::string::npos);
    CHECK(text.find(std::to_string(pipe.first())) != std::string::npos);
  });
}

TEST_CASE("io::recv() with MSG_DONTWAIT does not wait", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    CHECK(error_of([&] { io::recv(pair.first(), one_byte, MSG_DONTWAIT); }) ==
          std::errc::resource_unavailable_try_again);
  });
}

TEST_CASE("io::read() loses no byte in ten thousand interruptions", "[io]") {
  run([] {
    const std::size_t rounds = testing::scaled(10'000, testing::under_tsan ? 1'000 : 10'000);
    auto pipe = make_pipe();
    std::string text_read;
    std::size_t interruptions = 0;
    auto reader = spin([&] {
      while (!text_read.ends_with('.')) {
        try {
          text_read += read_text(pipe.first());
        } catch (const oops&) {
          ++interruptions;
        }
      }
    });
    until_waiting(reader);
    std::string text_sent;
    std::size_t raised = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      if (round % 3 != 1) raised += reader.raise(oops()) ? 1 : 0;
      if (round % 3 != 0) {
        const char byte = static_cast<char>('a' + round % 26);
        text_sent += byte;
        io::write(pipe.second(), std::as_bytes(std::span(&byte, 1)));
      }
      if (round % 5 != 0) snooze();
    }
    while (interruptions < raised) sleep_for(1ms);  // one that is pending at its end is reported
    io::write(pipe.second(), bytes_of("."));
    CHECK_NOTHROW(reader.await());
    CHECK(text_read == text_sent + ".");
    CHECK(interruptions == raised);
    CHECK(raised > rounds / 3);
  });
}

TEST_CASE("io calls that are ready at once let others run every sixteenth time", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    int turns = 0;
    bool stop = false;
    auto counter = spin([&] {
      while (!stop) {
        ++turns;
        snooze();
      }
    });
    for (int i = 0; i < 100; ++i) {
      io::write(pair.first(), one_byte);
      io::read(pair.second(), one_byte);
    }
    CHECK(turns >= 200 / 16);
    stop = true;
    counter.await();
  });
}

TEST_CASE("io::read() finds every byte ten thousand times in a row", "[io]") {
  run([] {
    const std::size_t rounds = testing::scaled(100'000, testing::under_tsan ? 2'000 : 10'000);
    auto pair = make_socket_pair();
    auto echo = spin([&] {
      std::byte byte[1];
      while (io::read(pair.second(), byte) == 1) io::write(pair.second(), byte);
    });
    std::size_t right = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      std::byte byte[1] = {static_cast<std::byte>(round)};
      io::write(pair.first(), byte);
      byte[0] = std::byte{0};
      right += io::read(pair.first(), byte) == 1 && byte[0] == static_cast<std::byte>(round);
    }
    CHECK(right == rounds);
    io::shutdown(pair.first(), SHUT_WR);
    echo.await();
  });
}
