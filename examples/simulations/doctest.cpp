// SPDX-License-Identifier: MIT
// A simulation in a test of doctest. A failure says with which seed: MOTET_SEED repeats it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "account.hpp"

TEST_CASE("an account is never overdrawn") {
  CHECK(motet::testing::explore(1'000, withdraw_twice) == 0);
}
