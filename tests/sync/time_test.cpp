// SPDX-License-Identifier: MIT
// Sleeping: never too short, in the order of the deadlines, in any unit.
#include <unistd.h>

#include <array>
#include <chrono>
#include <limits>
#include <motet/motet.hpp>
#include <vector>

#include "catch.hpp"
#include "compute.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::compute_until;
using testing::words;

TEST_CASE("sleep_for() with no time or less lets every runnable fiber run once", "[sleep]") {
  run([] {
    const std::array<clock::duration, 5> spans{0ns, -1ns, -1s, -100h, 1ns};
    for (const clock::duration span : spans) {
      int ran = 0;
      std::vector<fiber<void>> neighbours;
      for (int i = 0; i < 3; ++i) {
        neighbours.push_back(spin([&] {
          ++ran;
          snooze();
          snooze();
          snooze();
        }));
      }
      sleep_for(span);
      CHECK(ran == 3);
      for (auto& neighbour : neighbours) neighbour.await();
    }
  });
}

TEST_CASE("sleep_until() returns at once for a passed instant", "[sleep]") {
  run([] {
    sleep_until(clock::now());
    sleep_until(clock::now() - 1h);
    sleep_until(clock::time_point::min());
    sleep_until(clock::time_point());
    CHECK(clock::now() > clock::time_point());
  });
}

TEST_CASE("sleep_for() does not overflow with centuries", "[sleep]") {
  run([] {
    int woke = 0;
    group sleepers;
    const auto sleeps = [&](auto span) {
      sleepers.spin([&woke, span] {
        sleep_for(span);
        ++woke;
      });
    };
    sleeps(std::chrono::years(280));
    sleeps(std::chrono::years(300));
    sleeps(std::chrono::hours::max());
    sleeps(clock::duration::max());
    sleeps(std::chrono::duration<double>(std::numeric_limits<double>::max()));
    sleeps(std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
    sleepers.spin([&] {
      sleep_until(clock::time_point::max());
      ++woke;
    });
    for (int i = 0; i < 100; ++i) sleep_for(10us);
    CHECK(woke == 0);
    CHECK(sleepers.size() == 7);
    sleepers.cancel();
    sleepers.await_all();
  });
}

TEST_CASE("sleep_for() accepts any unit, and rounds fractions up", "[sleep]") {
  run([] {
    const auto start = clock::now();
    sleep_for(std::chrono::duration<double, std::milli>(1.5));
    sleep_for(std::chrono::duration<double, std::nano>(0.5));
    CHECK(clock::now() - start >= 1500us);
  });
}

TEST_CASE("sleep_for() never returns early, not even after a computation", "[sleep]") {
  run([] {
    for (int i = 0; i < 20; ++i) {
      if (i % 2 == 0) compute_until(clock::now() + 2ms);
      const auto start = clock::now();
      const auto truly = std::chrono::steady_clock::now();
      sleep_for(1ms + i * 37us);
      CHECK(clock::now() - start >= 1ms + i * 37us);
      if (!testing::on_sim()) {
        CHECK(std::chrono::steady_clock::now() - truly >= 1ms + i * 37us);
      }
    }
  });
}

TEST_CASE("sleep_for() wakes fibers in the order of their deadlines", "[sleep]") {
  run([] {
    std::vector<int> woken;
    const auto start = clock::now();
    for (int i : {5, 2, 4, 1, 3}) {
      spin([&woken, start, i] {
        sleep_until(start + i * 1ms);
        woken.push_back(i);
      });
    }
    suspend();
    CHECK(woken == std::vector<int>{1, 2, 3, 4, 5});
  });
}

TEST_CASE("sleep_until() wakes fibers with equal deadlines in the order of their calls",
          "[sleep]") {
  run([] {
    constexpr int fibers = 300;
    std::vector<int> woken, expected_order;
    const auto deadline = clock::now() + 5ms;
    for (int i = 0; i < fibers; ++i) {
      spin([&woken, deadline, i] {
        sleep_until(deadline);
        woken.push_back(i);
      });
      expected_order.push_back(i);
    }
    suspend();
    CHECK(woken == expected_order);
  });
}

TEST_CASE("sleep_until() keeps the order of equal deadlines when some are given up", "[sleep]") {
  run([] {
    constexpr int fibers = 64;
    std::vector<int> woken, expected_order;
    std::vector<fiber<void>> sleepers;
    const auto deadline = clock::now() + 5ms;
    for (int i = 0; i < fibers; ++i) {
      sleepers.push_back(spin([&woken, deadline, i] {
        sleep_until(deadline);
        woken.push_back(i);
      }));
    }
    snooze();
    for (int i = 0; i < fibers; ++i) {
      if (i % 3 == 1) {
        sleepers[static_cast<std::size_t>(i)].cancel();
      } else {
        expected_order.push_back(i);
      }
    }
    suspend();
    CHECK(woken == expected_order);
  });
}

TEST_CASE("virtual time goes straight to the next deadline", "[sleep]") {
  if (!testing::on_sim()) return;
  run([] {
    const auto start = clock::now();
    const auto truly = std::chrono::steady_clock::now();
    sleep_for(1h);
    CHECK(clock::now() - start >= 1h);
    CHECK(clock::now() - start < 1h + 1ms);
    CHECK(std::chrono::steady_clock::now() - truly < 1min);
  });
}

TEST_CASE("sleep_for() without time waits for the next poll", "[sleep]") {
  run([] {
    words trace;
    auto ends = testing::make_pipe();
    bool observed = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      observed = true;
    });
    int rounds = 0;
    auto restless = spin([&] {
      while (!observed && rounds < 100'000) {
        sleep_for(0ns);
        ++rounds;
      }
    });
    sleep_for(1ms);
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    reader.await();
    restless.await();
    CHECK(rounds > 0);
    CHECK(rounds < 100'000);
  });
}

TEST_CASE("timers that are due fire once per poll: no fiber is served twice before all once",
          "[sleep]") {
  run([] {
    std::array<int, 5> rounds{};
    std::vector<fiber<void>> sleepers;
    int largest_lead = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      sleepers.push_back(spin([&, i] {
        for (int round = 0; round < 50; ++round) {
          sleep_for(0ns);
          ++rounds[i];
          for (const int count : rounds) {
            if (rounds[i] - count > largest_lead) largest_lead = rounds[i] - count;
          }
        }
      }));
    }
    for (auto& sleeper : sleepers) sleeper.await();
    CHECK(largest_lead <= 1);
  });
}

// The last ones: a backend that takes a deadline long past for one far ahead never returns.

TEST_CASE("sleep_for() with minus centuries in any unit returns at once", "[sleep][past]") {
  run([] {
    int woke = 0;
    group sleepers;
    const auto sleeps = [&](auto span) {
      sleepers.spin([&woke, span] {
        sleep_for(span);
        ++woke;
      });
    };
    sleeps(std::chrono::years(-290));
    sleeps(std::chrono::years(-297));
    sleeps(std::chrono::years(-1'000));
    for (int i = 0; i < 10; ++i) sleep_for(1ms);
    CHECK(woke == 3);
  });
}

TEST_CASE("sleep_for() accepts the most negative span", "[sleep][past]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    sleep_for(clock::duration::min());
    CHECK(other_ran);
    sleep_until(clock::time_point::min() + 1ns);
  });
}
