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

std::atomic<int> seen_before{0};

void count_signal(int) {
  ++seen_before;
}

}  // namespace

TEST_CASE("a fiber waits for signals, and others run meanwhile", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1, SIGUSR2};
    auto waiting = spin([&] { return signals.next(); });
    until_waiting(waiting);
    ::kill(::getpid(), SIGUSR2);
    CHECK(waiting.await() == SIGUSR2);
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

TEST_CASE("a select has a branch for signals", "[signal][select]") {
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

TEST_CASE("an interrupted wait loses no signal", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1};
    int number = 0;
    auto waiting = spin([&] {
      number = signals.next();
      snooze();
    });
    until_waiting(waiting);
    CHECK(waiting.raise(oops()));
    ::raise(SIGUSR1);
    CHECK_THROWS_AS(waiting.await(), oops);
    if (number == 0) number = signals.next();
    CHECK(number == SIGUSR1);
  });
}

TEST_CASE("a signal does again what it did before", "[signal]") {
  struct sigaction counting{};
  counting.sa_handler = &count_signal;
  struct sigaction before{};
  REQUIRE(::sigaction(SIGUSR1, &counting, &before) == 0);
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    seen_before = 0;
    {
      signal_set signals{SIGUSR1};
      signal_set moved = std::move(signals);
      ::raise(SIGUSR1);
      CHECK(moved.next() == SIGUSR1);
      CHECK(seen_before == 0);
      CHECK_THROWS_AS(signal_set({SIGUSR2, SIGUSR1}), std::logic_error);
    }
    ::raise(SIGUSR1);
    CHECK(seen_before == 1);
    signal_set other{SIGUSR2, SIGUSR2};
    ::raise(SIGUSR2);
    CHECK(other.next() == SIGUSR2);
    CHECK(testing::open_descriptors() == descriptors + 2);
  });
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("signals that cannot be caught, or are faults, are refused", "[signal]") {
  for (const int each : {SIGKILL, SIGSTOP, SIGSEGV, 0, -1, 32, 65, 1000}) {
    INFO(each);
    CHECK_THROWS_AS(signal_set({each}), std::invalid_argument);
  }
}

TEST_CASE("a thread that comes or goes does not matter to signals", "[signal]") {
  run([] {
    std::atomic<bool> over{false};
    std::thread plain([&] {
      while (!over) std::this_thread::sleep_for(1ms);
    });
    signal_set signals{SIGUSR1};
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(plain.native_handle(), SIGUSR1);
      CHECK(signals.next() == SIGUSR1);
    }
    over = true;
    plain.join();
  });
}

TEST_CASE("programs that are started have the signals as they were", "[signal]") {
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
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how));
    CHECK_FALSE(move_on_after(1ms, [&] { signals.next(); }));
  });
}

TEST_CASE("a set that is made and destroyed under signals loses none of another", "[signal]") {
  run([] {
    struct sigaction counting{};
    counting.sa_handler = &count_signal;
    struct sigaction before{};
    REQUIRE(::sigaction(SIGUSR1, &counting, &before) == 0);
    std::atomic<bool> over{false};
    std::thread sender([&] {
      while (!over) ::kill(::getpid(), SIGUSR1);
    });
    const int rounds = static_cast<int>(testing::scaled(2'000, 200));
    for (int i = 0; i < rounds; ++i) {
      signal_set signals{SIGUSR1};
      CHECK(signals.next() == SIGUSR1);
    }
    over = true;
    sender.join();
    ::sigaction(SIGUSR1, &before, nullptr);
  });
}

TEST_CASE("a signal is not lost with the fiber that it meets", "[signal]") {
  run([] {
    signal_set signals{SIGUSR1};
    std::atomic<int> wanted{0};
    const int most = static_cast<int>(testing::scaled(5'000, 500));
    std::thread sender([&, main = ::pthread_self()] {
      for (int sent = 0; sent < most;) {
        if (wanted == sent) continue;
        std::this_thread::sleep_for(std::chrono::microseconds(++sent % 97));
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
    for (int i = 0; i < most; ++i) {
      ++wanted;
      CHECK(signals.next() == SIGUSR1);
    }
    sender.join();
    spinner.cancel();
  });
}

TEST_CASE("a set may be moved or destroyed while a fiber waits for it", "[signal]") {
  run([] {
    std::optional<signal_set> first(std::in_place, std::initializer_list<int>{SIGUSR1});
    auto waiting = spin([&] { return first->next(); });
    testing::until_waiting(waiting);
    signal_set second = std::move(*first);
    ::raise(SIGUSR1);
    CHECK(waiting.await() == SIGUSR1);

    std::optional<signal_set> gone(std::move(second));
    auto left = spin([&] { return gone->next(); });
    testing::until_waiting(left);
    gone.reset();
    CHECK(testing::error_of([&] { left.await(); }) == std::errc::bad_file_descriptor);

    gone.emplace(std::initializer_list<int>{SIGUSR1});
    auto woken = spin([&] { return gone->next(); });
    testing::until_waiting(woken);
    ::raise(SIGUSR1);
    while (woken.state() == fiber_state::waiting) snooze();
    gone.reset();
    CHECK(woken.await() == SIGUSR1);
  });
}
