// SPDX-License-Identifier: MIT
// See run_here.hpp. A whole test file runs with one seed after another, in the orders that the
// contract allows.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <motet/testing.hpp>

#include "catch.hpp"
#include "run_here.hpp"
#include "support.hpp"

namespace testing {

namespace {

/// MOTET_SEED is the only seed.
const char* const only_seed = std::getenv("MOTET_SEED");
std::uint64_t seed = only_seed != nullptr ? std::strtoull(only_seed, nullptr, 10) : 0;

}  // namespace

void run_here(const std::function<void()>& function) {
  const motet::testing::outcome result =
      motet::testing::run({.seed = seed}, [&](motet::testing::world&) { function(); });
  INFO("seed " << seed << ": " << result.failure);
  CHECK(result.failure.empty());
}

bool next_round() {
  return only_seed == nullptr && ++seed < scaled(1'000, under_asan || under_tsan ? 2 : 5);
}

}  // namespace testing
