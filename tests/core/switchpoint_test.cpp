// SPDX-License-Identifier: MIT
// Busy fibers: descriptors, timers and other threads are seen within a few switches.
#include <unistd.h>

#include <array>
#include <motet/motet.hpp>
#include <mutex>
#include <string>
#include <thread>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Far more than any of these tests takes; only a defect lets it pass.
bool patient(std::chrono::steady_clock::time_point since) {
  return std::chrono::steady_clock::now() - since < 5s;
}

void compute_for(std::chrono::steady_clock::duration span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("a pipe is seen within 64 switches while two fibers snooze for ever", "[fairness]") {
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

TEST_CASE("a pipe is seen within two rounds of a long queue", "[fairness]") {
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

TEST_CASE("a fiber that snoozes alone sees a timer", "[fairness]") {
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

TEST_CASE("two fibers that snooze for ever see a timer", "[fairness]") {
  run([] {
    bool fired = false;
    spin([&] {
      sleep_for(1ms);
      fired = true;
    });
    const auto start = std::chrono::steady_clock::now();
    auto other = spin([&] {
      while (!fired && patient(start)) snooze();
    });
    while (!fired && patient(start)) snooze();
    CHECK(fired);
    other.await();
  });
}

TEST_CASE("a fiber that snoozes alone sees a pipe", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool seen = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      seen = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    const auto start = std::chrono::steady_clock::now();
    while (!seen && patient(start)) snooze();
    CHECK(seen);
    reader.await();
  });
}

TEST_CASE("a fiber that sleeps for no time again and again does not starve a pipe", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool seen = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      seen = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    int rounds = 0;
    while (!seen && ++rounds < 1000) sleep_for(0ms);
    CHECK(seen);
    reader.await();
  });
}

TEST_CASE("a checkpoint gives way to others once its time has come", "[fairness]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    compute_for(2ms);
    checkpoint();
    CHECK(other_ran);
  });
}

TEST_CASE("a busy thread sees what another thread raises", "[fairness]") {
  run([] {
    std::string told;
    auto idle = spin([&] {
      try {
        sleep();
      } catch (const std::runtime_error& error) {
        told = error.what();
      }
    });
    snooze();
    CHECK(idle.state() == fiber_state::waiting);
    std::thread stranger([ref = fiber_ref(idle)] { ref.raise(std::runtime_error("from afar")); });
    const auto start = std::chrono::steady_clock::now();
    while (idle.state() != fiber_state::dead && patient(start)) snooze();
    CHECK(told == "from afar");
    stranger.join();
  });
}

TEST_CASE("two busy fibers see what another thread schedules", "[fairness]") {
  run([] {
    bool woken = false;
    auto idle = spin([&] {
      (void)suspend<int>();
      woken = true;
    });
    snooze();
    std::thread stranger([ref = fiber_ref(idle)] { ref.schedule(1); });
    const auto start = std::chrono::steady_clock::now();
    auto other = spin([&] {
      while (!woken && patient(start)) snooze();
    });
    while (!woken && patient(start)) snooze();
    CHECK(woken);
    stranger.join();
    other.await();
  });
}

TEST_CASE("reads that need not wait give way, whatever else a fiber calls between them",
          "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    mutex lock;
    bool done = false;
    int turns = 0;
    auto sleeper = spin([] { sleep_for(1h); });
    auto other = spin([&] {
      while (!done) {
        ++turns;
        snooze();
      }
    });
    std::array<std::byte, 1> one{};
    for (int i = 0; i < 1'600; ++i) {
      io::write(ends.second(), one);
      io::read(ends.first(), one);
      for (int call = 0; call < 90; ++call) const std::lock_guard held(lock);
    }
    CHECK(turns >= 100);
    done = true;
    other.await();
    sleeper.cancel();
  });
}
