// SPDX-License-Identifier: MIT
// Who calls the C library: calls outside of fibers, in sections, in signal handlers and in children
// are the C library's own.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <motet/posix.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;

/// Counts how often another fiber of the thread runs.
class ticking {
 public:
  ticking()
      : fiber_(spin({.transient = true}, [this] {
          for (;; ++count_) sleep_for(1ms);
        })) {
    snooze();
  }
  ~ticking() { fiber_.cancel(); }
  ticking(const ticking&) = delete;
  ticking& operator=(const ticking&) = delete;

  /// Returns: whether the other fiber runs while `call()` waits.
  template <typename F>
  bool during(F call) {
    const std::size_t count = count_;
    call();
    return count_ > count;
  }

 private:
  std::size_t count_ = 0;
  fiber<void> fiber_;
};

void pause_in_c() {
  const timespec span{0, 20'000'000};
  CHECK(::nanosleep(&span, nullptr) == 0);
}

/// Returns: the exit status of a child, which waits for 20 ms and calls `run()`.
template <typename F>
int status_of_child(F run) {
  const pid_t child = ::fork();
  if (child == 0) {
    const timespec span{0, 20'000'000};
    ::_exit(::nanosleep(&span, nullptr) == 0 ? run() : 100);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

}  // namespace

TEST_CASE("posix::switches() is true in fibers only") {
  CHECK(!posix::switches());
  run([] {
    CHECK(posix::switches());
    spin([] { CHECK(posix::switches()); }).await();
    bool on_thread = true;
    std::thread([&] { on_thread = posix::switches(); }).join();
    CHECK(!on_thread);
  });
  CHECK(!posix::switches());
}

TEST_CASE("posix::plain() leaves calls of its fiber to the C library, and of no other") {
  run([] {
    ticking other;
    CHECK(other.during(pause_in_c));
    CHECK(!other.during([] { posix::plain(pause_in_c); }));
    posix::plain([&] {
      CHECK(!posix::switches());
      posix::plain([] { CHECK(!posix::switches()); });
      const posix::deadline_as inner(ETIMEDOUT);
      CHECK(!posix::switches());
      spin([&] { CHECK(posix::switches()); }).await();
    });
    CHECK(posix::switches());
    CHECK(posix::plain([] { return 7; }) == 7);
    CHECK_THROWS_AS(posix::plain([] { throw std::runtime_error("out"); }), std::runtime_error);
    CHECK(posix::switches());
  });
}

TEST_CASE("no_switch_guard leaves calls to the C library") {
  run([] {
    ticking other;
    CHECK(!other.during([] {
      const no_switch_guard guard;
      CHECK(!posix::switches());
      pause_in_c();
    }));
    CHECK(other.during(pause_in_c));
  });
}

TEST_CASE("motet-posix: a signal handler on a stack of its own blocks the thread") {
  static volatile sig_atomic_t result = 0;
  std::vector<char> memory(65'536);
  const stack_t stack{memory.data(), 0, memory.size()};
  stack_t previous_stack{};
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = [](int) {
    const timespec span{0, 20'000'000};
    result = ::nanosleep(&span, nullptr) == 0 ? 1 : 2;
  };
  action.sa_flags = SA_ONSTACK;
  REQUIRE(::sigaction(SIGUSR1, &action, &previous) == 0);
  run([&] {
    REQUIRE(::sigaltstack(&stack, &previous_stack) == 0);
    ticking other;
    CHECK(!other.during([] { ::raise(SIGUSR1); }));
    CHECK(result == 1);
    CHECK(other.during(pause_in_c));
    REQUIRE(::sigaltstack(&previous_stack, nullptr) == 0);
  });
  ::sigaction(SIGUSR1, &previous, nullptr);
}

TEST_CASE("motet-posix: a forked child calls the C library, and may run fibers of its own") {
  const auto nothing = [] { return 7; };
  CHECK(status_of_child(nothing) == 7);
  run([&] {
    CHECK(status_of_child(nothing) == 7);
    CHECK(status_of_child([] {
            fiber<int> child = spin([] {
              sleep_for(1ms);
              const timespec span{0, 1'000'000};
              return ::nanosleep(&span, nullptr) == 0 ? 8 : 9;
            });
            return child.await();
          }) == 8);
  });
}

TEST_CASE("motet-posix: a child of vfork() blocks, and its parent's fibers go on") {
  run([] {
    ticking other;
    pid_t child = -1;
    CHECK(!other.during([&] {
      child = ::vfork();
      if (child == 0) {
        const timespec span{0, 20'000'000};
        ::nanosleep(&span, nullptr);
        ::_exit(3);
      }
    }));
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 3);
    CHECK(other.during(pause_in_c));
  });
}

TEST_CASE("motet-posix: a fiber whose calls never wait does not starve the others") {
  run([] {
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::pipe(ends.data()) == 0);
    const fd reader(ends[0]);
    const fd writer(ends[1]);
    bool done = false;
    fiber<void> other = spin([&] {
      sleep_for(1ms);
      done = true;
    });
    const auto start = clock::now();
    char byte = 0;
    while (!done && clock::now() - start < 5s) {
      REQUIRE(::write(writer.get(), "x", 1) == 1);
      REQUIRE(::read(reader.get(), &byte, 1) == 1);
    }
    CHECK(done);
    other.await();
  });
}

TEST_CASE("motet-posix: calls on files do not switch, nor do calls that never wait") {
  run([] {
    std::string path = "/tmp/motet-posix-XXXXXX";
    const fd file(::mkstemp(path.data()));
    ::unlink(path.c_str());
    REQUIRE(file);
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::pipe(ends.data()) == 0);
    const fd reader(ends[0]);
    const fd writer(ends[1]);
    ticking other;
    const bool has_run = other.during([&] {
      for (const auto end = clock::now() + 5ms; clock::now() < end;) {
        char byte = 0;
        CHECK(::write(file.get(), "x", 1) == 1);
        CHECK(::lseek(file.get(), 0, SEEK_SET) == 0);
        CHECK(::read(file.get(), &byte, 1) == 1);
        CHECK(::write(writer.get(), "x", 1) == 1);  // as signal handlers do
        pollfd entry{reader.get(), POLLIN, 0};
        CHECK(::poll(&entry, 1, 0) == 1);
        CHECK(::close(::dup(writer.get())) == 0);
        CHECK(posix::switches());
        byte = 0;
        posix::plain([&] { CHECK(::read(reader.get(), &byte, 1) == 1); });
      }
    });
    CHECK(!has_run);
  });
}

TEST_CASE("posix::plain() and deadline_as outside of fibers start no runtime") {
  std::thread([] {
    posix::plain([] { CHECK(!posix::switches()); });
    const posix::deadline_as limit(ETIMEDOUT);
    CHECK(!posix::switches());
  }).join();
}

TEST_CASE("close() in a fiber goes on while another fiber calls again and again") {
  motet::run([] {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    std::size_t calls = 0;
    bool closed = false;
    group tasks;
    tasks.spin([&] {
      char byte = 0;
      for (; !closed && calls < 100'000; ++calls) ::recv(ends[0], &byte, 1, 0);
    });
    snooze();
    CHECK(::close(ends[0]) == 0);
    closed = true;
    tasks.await_all();
    CHECK(calls < 10);
    ::close(ends[1]);
  });
}
