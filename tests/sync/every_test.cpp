// SPDX-License-Identifier: MIT
// Repetition: once a period, until an exception ends it.
#include <chrono>
#include <motet/motet.hpp>
#include <motet/sync/every.hpp>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

TEST_CASE("every() calls once per period, and skips periods that it missed", "[every]") {
  run([] {
    const auto begin = clock::now();
    std::vector<clock::duration> times;
    every(10ms, [&] {
      times.push_back(clock::now() - begin);
      if (times.size() == 2) sleep_for(25ms);
      return times.size() < 4;
    });
    REQUIRE(times.size() == 4);
    CHECK(times[0] >= 10ms);
    CHECK(times[1] >= 20ms);
    CHECK(times[2] >= 50ms);  // those at 30 and 40 were missed
    CHECK(times[3] >= 60ms);
    if (testing::on_sim()) CHECK(times[3] < 61ms);

    const auto again = clock::now();
    int calls = 0;
    every({.period = 10ms, .when = pace::delayed}, [&] {
      sleep_for(5ms);
      return ++calls < 3;
    });
    CHECK(clock::now() - again >= 45ms);
    CHECK_THROWS_AS(every(0ms, [] {}), std::invalid_argument);
    CHECK_FALSE(
        move_on_after(1ms, [] { every(std::chrono::hours::max(), [] { FAIL("never"); }); }));
  });
}

TEST_CASE("every() ends with an exception unless the callable handles it", "[every]") {
  run([] {
    const auto fails = [] { throw std::runtime_error("once"); };
    CHECK_THROWS_AS(every(1ms, fails), std::runtime_error);
    int failures = 0;
    const auto begin = clock::now();
    every({.period = 1ms, .on_error = [&](const std::exception_ptr&) { ++failures; }}, [&] {
      if (failures < 5) throw std::runtime_error("again");
      return false;
    });
    CHECK(failures == 5);
    CHECK(clock::now() - begin >= 6ms);
    CHECK_FALSE(move_on_after(1ms, [&] {
      every({.period = 1us, .on_error = [](const std::exception_ptr&) {}}, [] { sleep(); });
    }));
    CHECK_THROWS_AS(
        every({.period = 1ms, .on_error = [](const std::exception_ptr&) { throw 7; }}, fails), int);
  });
}
