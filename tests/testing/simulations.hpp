// SPDX-License-Identifier: MIT
// For tests that run simulations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <motet/testing.hpp>
#include <stdexcept>

#include "catch.hpp"

namespace testing {

/// Throws, which fails a simulation.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::runtime_error(rule);
}

/// Returns: mostly none, else up to 50 us.
inline std::chrono::microseconds pause(motet::testing::world& in) {
  return std::chrono::microseconds(in.random(4) == 0 ? in.random(50) : 0);
}

/// Passes with a number of seeds, in every order.
inline void passes(const std::function<void(motet::testing::world&)>& function,
                   std::uint64_t seeds = 60) {
  using motet::testing::order;
  constexpr order orders[] = {order::open, order::any, order::pct};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const motet::testing::outcome result =
        motet::testing::run({.seed = seed, .how = orders[seed % 3]}, function);
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
}

}  // namespace testing
