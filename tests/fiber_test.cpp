// SPDX-License-Identifier: MIT
// Fibers: starting, states, order, awaiting, tokens.
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;

TEST_CASE("a spun fiber runs when it is its turn, and its value is awaited", "[fiber]") {
  run([] {
    int seen = 0;
    auto f = spin([&] {
      seen = 42;
      return 42;
    });
    CHECK(f.state() == fiber_state::runnable);
    CHECK(seen == 0);
    CHECK(f.await() == 42);
    CHECK(seen == 42);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("an exception reaches whoever awaits", "[fiber]") {
  run([] {
    auto f = spin([]() -> int { throw std::runtime_error("x"); });
    CHECK_THROWS_AS(f.await(), std::runtime_error);
    CHECK_THROWS_AS(f.await(), std::runtime_error);
  });
}

TEST_CASE("snoozing fibers take turns", "[fiber]") {
  run([] {
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      spin([&order, i] {
        for (int round = 0; round < 3; ++round) {
          snooze();
          order.push_back(i);
        }
      });
    }
    suspend();
    CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2});
  });
}
