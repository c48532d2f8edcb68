// SPDX-License-Identifier: MIT
// Busy fibers: descriptors, timers and other threads are seen within a few switches.
#include <unistd.h>

#include <array>
#include <motet/motet.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Far more than any of these tests takes; only a defect lets it pass.
bool patient(std::chrono::steady_clock::time_point start) {
  return std::chrono::steady_clock::now() - start < 5s;
}

void compute_for(std::chrono::steady_clock::duration span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("switchpoint: a pipe is polled within 64 switches while two fibers snooze for ever",
          "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    int switches = 0;
    bool done = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      done = true;
    });
    group busy;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 2; ++i) {
      busy.spin([&] {
        while (!done && patient(start)) {
          ++switches;
          snooze();
        }
      });
    }
    for (int i = 0; i < 200; ++i) snooze();  // the read is in the kernel's hands
    CHECK(!done);
    switches = 0;
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    reader.await();
    CHECK(switches <= 64 + 4);  // a poll after at most 65 switches, and a turn in the queue
    busy.await_all();
  });
}

TEST_CASE("switchpoint: a pipe is polled within two rounds of a long run queue", "[fairness]") {
  run([] {
    constexpr int fibers = 500;
    auto ends = testing::make_pipe();
    bool done = false;
    int switches = 0;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      done = true;
    });
    group busy;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < fibers; ++i) {
      busy.spin([&] {
        while (!done && patient(start)) {
          ++switches;
          snooze();
        }
      });
    }
    for (int i = 0; i < 3; ++i) snooze();
    switches = 0;
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    reader.await();
    CHECK(switches <= 2 * fibers + 4);
    busy.await_all();
  });
}

TEST_CASE("switchpoint: 4,500 fibers take turns in one order until the last has ended",
          "[fairness]") {
  run([] {
    constexpr std::size_t fibers = 4'500;
    constexpr std::size_t rounds = 4;
    std::vector<std::size_t> runs;
    group all;
    for (std::size_t i = 0; i < fibers; ++i) {
      all.spin([&, i] {
        // The first to be spun end first, so that the queue shrinks through every size.
        for (std::size_t round = 0; round < rounds + i / 500; ++round) {
          runs.push_back(i);
          snooze();
        }
      });
    }
    all.await_all();
    std::vector<std::size_t> expected;
    for (std::size_t round = 0; round < rounds + fibers / 500; ++round) {
      for (std::size_t i = 0; i < fibers; ++i) {
        if (round < rounds + i / 500) expected.push_back(i);
      }
    }
    CHECK(runs == expected);
  });
}

TEST_CASE("snooze() in a handler keeps the exception when mail makes another fiber runnable",
          "[fairness]") {
  run([] {
    const std::size_t rounds = testing::scaled(2'000, 200);
    std::size_t kept = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      bool woken = false;
      auto waiter = spin([&] {
        try {
          throw 0;
        } catch (int) {
          suspend();
        }
        woken = true;
      });
      snooze();
      std::thread other([ref = fiber_ref(waiter)]() mutable { ref.schedule(); });
      try {
        try {
          throw round;
        } catch (std::size_t) {
          // Alone until the mail is read, which happens between this fiber's push and its turn.
          while (!woken) snooze();
          throw;
        }
      } catch (std::size_t number) {
        kept += number == round ? 1 : 0;
      }
      other.join();
      waiter.await();
    }
    CHECK(kept == rounds);
  });
}

TEST_CASE("switchpoint: a fiber that snoozes alone lets timers fire", "[fairness]") {
  run([] {
    bool fired = false;
    spin([&] {
      sleep_for(2ms);
      fired = true;
    });
    const auto start = std::chrono::steady_clock::now();
    while (!fired && patient(start)) snooze();
    CHECK(fired);
  });
}

TEST_CASE("switchpoint: two fibers that snooze for ever let timers fire", "[fairness]") {
  run([] {
    bool fired = false;
    spin([&] {
      sleep_for(1ms);
      fired = true;
    });
    const auto start = std::chrono::steady_clock::now();
    auto second = spin([&] {
      while (!fired && patient(start)) snooze();
    });
    while (!fired && patient(start)) snooze();
    CHECK(fired);
    second.await();
  });
}

TEST_CASE("switchpoint: a fiber that snoozes alone lets pipes be polled", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool polled = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      polled = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    const auto start = std::chrono::steady_clock::now();
    while (!polled && patient(start)) snooze();
    CHECK(polled);
    reader.await();
  });
}

TEST_CASE("switchpoint: a fiber that sleeps for zero in a loop does not starve a pipe",
          "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool polled = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      polled = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    int rounds = 0;
    while (!polled && ++rounds < 1000) sleep_for(0ms);
    CHECK(polled);
    reader.await();
  });
}

TEST_CASE("checkpoint() yields to other fibers once its time has come", "[fairness]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    compute_for(2ms);
    checkpoint();
    CHECK(other_ran);
  });
}

TEST_CASE("switchpoint: a busy thread receives an exception raised by another thread",
          "[fairness]") {
  run([] {
    std::string message;
    auto idle = spin([&] {
      try {
        sleep();
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
    });
    snooze();
    CHECK(idle.state() == fiber_state::waiting);
    std::thread stranger([ref = fiber_ref(idle)] { ref.raise(std::runtime_error("from afar")); });
    const auto start = std::chrono::steady_clock::now();
    while (idle.state() != fiber_state::dead && patient(start)) snooze();
    CHECK(message == "from afar");
    stranger.join();
  });
}

TEST_CASE("switchpoint: two busy fibers receive a token from another thread", "[fairness]") {
  run([] {
    bool woken = false;
    auto idle = spin([&] {
      (void)suspend<int>();
      woken = true;
    });
    snooze();
    std::thread stranger([ref = fiber_ref(idle)] { ref.schedule(1); });
    const auto start = std::chrono::steady_clock::now();
    auto second = spin([&] {
      while (!woken && patient(start)) snooze();
    });
    while (!woken && patient(start)) snooze();
    CHECK(woken);
    stranger.join();
    second.await();
  });
}

TEST_CASE("switchpoint: reads that need not wait yield, whatever is called between them",
          "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    mutex lock;
    bool done = false;
    int turns = 0;
    auto sleeper = spin([] { sleep_for(1h); });
    auto second = spin([&] {
      while (!done) {
        ++turns;
        snooze();
      }
    });
    std::array<std::byte, 1> byte{};
    for (int i = 0; i < 1'600; ++i) {
      io::write(ends.second(), byte);
      io::read(ends.first(), byte);
      for (int call = 0; call < 90; ++call) const std::lock_guard guard(lock);
    }
    CHECK(turns >= 100);
    done = true;
    second.await();
    sleeper.cancel();
  });
}
