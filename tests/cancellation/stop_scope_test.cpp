// SPDX-License-Identifier: MIT
// Calls that a stop ends, and the tokens that tell of it.
#include <chrono>
#include <motet/motet.hpp>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_end;
using testing::throws_cancelled;

TEST_CASE("move_on_when_stopped(): a stop that another fiber requests ends a call", "[stop]") {
  run([] {
    std::stop_source source;
    auto requester = spin([&] {
      sleep_for(5ms);
      source.request_stop();
    });
    CHECK_FALSE(move_on_when_stopped(source.get_token(), [] { sleep(); }));
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
    CHECK(move_on_when_stopped(std::stop_token(), [] { return 3; }) == 3);
    CHECK_FALSE(move_on_when_stopped(source.get_token(), [] { return snooze(), 3; }).has_value());
  });
}

TEST_CASE("move_on_when_stopped(): a stop from another thread ends a call, before or during it",
          "[stop]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 500);
    for (std::size_t i = 0; i < rounds; ++i) {
      std::stop_source source;
      std::jthread remote([&] { source.request_stop(); });
      move_on_when_stopped(source.get_token(), [&] {
        if (i % 2 == 0) sleep();
      });
    }
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("move_on_when_stopped(): a stop does not affect code outside of its call", "[stop]") {
  run([] {
    std::stop_source inner;
    bool stopped = false;
    const bool in_time = move_on_after(1h, [&] {
      inner.request_stop();
      stopped = !move_on_when_stopped(inner.get_token(), [] { sleep(); });
      snooze();
    });
    CHECK(in_time);
    CHECK(stopped);
  });
}

TEST_CASE("move_on_when_stopped(): a token is stopped by an interruption before unwinding starts",
          "[stop]") {
  run([] {
    std::vector<int> order;
    auto worker = spin([&] {
      with_stop_token([&](const std::stop_token& token) {
        const std::stop_callback note(token, [&] { order.push_back(1); });
        const at_end unwinding{[&] { order.push_back(2); }};
        sleep();
      });
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(order == std::vector{1, 2});
  });
}

TEST_CASE("move_on_when_stopped(): a token is stopped by the end of its call, not by inner events",
          "[stop]") {
  run([] {
    std::stop_token token_copy;
    CHECK_FALSE(move_on_after(20ms, [&] {
      with_stop_token([&](std::stop_token token) {
        token_copy = token;
        CHECK_FALSE(move_on_after(1ms, [] { sleep(); }));
        CHECK_FALSE(token.stop_requested());
        sleep();
      });
    }));
    CHECK(token_copy.stop_requested());
    CHECK_FALSE(with_stop_token([](std::stop_token token) { return token; }).stop_requested());
    try {
      with_stop_token([&](std::stop_token token) {
        token_copy = token;
        throw 1;
      });
    } catch (int) {
    }
    CHECK(token_copy.stop_requested());
  });
}
