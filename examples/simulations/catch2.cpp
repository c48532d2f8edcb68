// SPDX-License-Identifier: MIT
// A simulation in a test of Catch2. A failure says with which seed: MOTET_SEED repeats it.
#define CATCH_CONFIG_MAIN
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include "account.hpp"

TEST_CASE("an account is never overdrawn") {
  CHECK(motet::testing::explore(1'000, withdraw_twice) == 0);
}

TEST_CASE("nor if any runnable fiber may be the next") {
  CHECK(motet::testing::explore(1'000, withdraw_twice, {.how = motet::testing::order::any}) == 0);
}
