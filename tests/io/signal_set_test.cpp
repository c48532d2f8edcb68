// SPDX-License-Identifier: MIT
// Signals that a fiber waits for.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::until_waiting;

namespace {

std::atomic<int> signal_count{0};

void count_signal(int) {
  ++signal_count;
}

}  // namespace

TEST_CASE("signal_set::next() waits for a signal while other fibers run", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1, SIGUSR2};
    auto waiter = spin([&] { return signals.next(); });
    until_waiting(waiter);
    ::kill(::getpid(), SIGUSR2);
    CHECK(waiter.await() == SIGUSR2);
    ::raise(SIGUSR1);
    ::raise(SIGUSR2);
    ::raise(SIGUSR1);
    CHECK(signals.next() == SIGUSR1);
    CHECK(signals.next() == SIGUSR2);
    CHECK_FALSE(move_on_after(1ms, [&] { signals.next(); }));
    ::raise(SIGUSR1);
    CHECK(signals.next() == SIGUSR1);
  });
}

TEST_CASE("on_signal() is a branch of select()", "[signal][select]") {
  run([] {
    signal_set signals{SIGUSR1};
    int number = 0;
    const auto take = [&](int signal) { number = signal; };
    CHECK(select(on_signal(signals, take), on_timeout(1ms)) == 1);
    spin([] { ::raise(SIGUSR1); });
    CHECK(select(on_signal(signals, take), on_timeout(10s)) == 0);
    CHECK(number == SIGUSR1);
    CHECK(select(on_signal(signals, take), on_timeout(1ms)) == 1);
  });
}

TEST_CASE("signal_set::next() loses no signal when it is interrupted", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1};
    int number = 0;
    auto waiter = spin([&] {
      number = signals.next();
      snooze();
    });
    until_waiting(waiter);
    CHECK(waiter.raise(oops()));
    ::raise(SIGUSR1);
    CHECK_THROWS_AS(waiter.await(), oops);
    if (number == 0) number = signals.next();
    CHECK(number == SIGUSR1);
  });
}

TEST_CASE("signal_set restores the former action of its signals", "[signal]") {
  struct sigaction counting{};
  counting.sa_handler = &count_signal;
  struct sigaction before{};
  REQUIRE(::sigaction(SIGUSR1, &counting, &before) == 0);
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    signal_count = 0;
    {
      signal_set signals{SIGUSR1};
      signal_set target = std::move(signals);
      ::raise(SIGUSR1);
      CHECK(target.next() == SIGUSR1);
      CHECK(signal_count == 0);
      CHECK_THROWS_AS(signal_set({SIGUSR2, SIGUSR1}), std::logic_error);
    }
    ::raise(SIGUSR1);
    CHECK(signal_count == 1);
    signal_set second{SIGUSR2, SIGUSR2};
    ::raise(SIGUSR2);
    CHECK(second.next() == SIGUSR2);
    CHECK(testing::open_descriptors() == descriptors + 2);
  });
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("signal_set rejects signals that cannot be caught, or are faults", "[signal]") {
  for (const int number : {SIGKILL, SIGSTOP, SIGSEGV, 0, -1, 32, 65, 1000}) {
    INFO(number);
    CHECK_THROWS_AS(signal_set({number}), std::invalid_argument);
  }
}

TEST_CASE("signal_set gets a signal that was sent to another thread", "[signal]") {
  run([] {
    std::atomic<bool> done{false};
    std::thread plain([&] {
      while (!done) std::this_thread::sleep_for(1ms);
    });
    signal_set signals{SIGUSR1};
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(plain.native_handle(), SIGUSR1);
      CHECK(signals.next() == SIGUSR1);
    }
    done = true;
    plain.join();
  });
}

TEST_CASE("signal_set leaves the signals of started programs as they were", "[signal]") {
  run([] {
    signal_set signals{SIGUSR2};
    // The shell ends itself; if SIGUSR2 were blocked or ignored, it would go on.
    const int status = std::system("kill -USR2 $$; exit 3");
    CHECK(WIFSIGNALED(status));
    const pid_t child = ::fork();
    if (child == 0) {
      ::raise(SIGUSR2);
      ::_exit(3);
    }
    int child_status = 0;
    REQUIRE(::waitpid(child, &child_status, 0) == child);
    CHECK(WIFSIGNALED(child_status));
    CHECK_FALSE(move_on_after(1ms, [&] { signals.next(); }));
  });
}

TEST_CASE("signal_set loses no signal of another set when it is made and destroyed", "[signal]") {
  run([] {
    struct sigaction counting{};
    counting.sa_handler = &count_signal;
    struct sigaction before{};
    REQUIRE(::sigaction(SIGUSR1, &counting, &before) == 0);
    std::atomic<bool> done{false};
    std::thread sender([&] {
      while (!done) ::kill(::getpid(), SIGUSR1);
    });
    const int rounds = static_cast<int>(testing::scaled(2'000, 200));
    for (int i = 0; i < rounds; ++i) {
      signal_set signals{SIGUSR1};
      CHECK(signals.next() == SIGUSR1);
    }
    done = true;
    sender.join();
    ::sigaction(SIGUSR1, &before, nullptr);
  });
}

TEST_CASE("signal_set loses no signal that interrupts a running fiber", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1};
    std::atomic<int> requests{0};
    const int limit = static_cast<int>(testing::scaled(5'000, 500));
    std::thread sender([&, main = ::pthread_self()] {
      for (int count = 0; count < limit;) {
        if (requests == count) continue;
        std::this_thread::sleep_for(std::chrono::microseconds(++count % 97));
        ::pthread_kill(main, SIGUSR1);
      }
    });
    auto spinner = spin([&] {
      for (;;) {
        spin([] {
          volatile int sum = 0;
          for (int i = 0; i < 2'000; ++i) sum = sum + i;
        }).await();
      }
    });
    for (int i = 0; i < limit; ++i) {
      ++requests;
      CHECK(signals.next() == SIGUSR1);
    }
    sender.join();
    spinner.cancel();
  });
}

TEST_CASE("signal_set may be moved or destroyed while a fiber waits for it", "[signal]") {
  run([] {
    std::optional<signal_set> first(std::in_place, std::initializer_list<int>{SIGUSR1});
    auto waiter = spin([&] { return first->next(); });
    testing::until_waiting(waiter);
    signal_set second = std::move(*first);
    ::raise(SIGUSR1);
    CHECK(waiter.await() == SIGUSR1);

    std::optional<signal_set> set(std::move(second));
    auto second_waiter = spin([&] { return set->next(); });
    testing::until_waiting(second_waiter);
    set.reset();
    CHECK(testing::error_of([&] { second_waiter.await(); }) == std::errc::bad_file_descriptor);

    set.emplace(std::initializer_list<int>{SIGUSR1});
    auto woken = spin([&] { return set->next(); });
    testing::until_waiting(woken);
    ::raise(SIGUSR1);
    while (woken.state() == fiber_state::waiting) snooze();
    set.reset();
    CHECK(woken.await() == SIGUSR1);
  });
}
