// SPDX-License-Identifier: MIT
// A simulation in a test of GoogleTest. A failure says with which seed: MOTET_SEED repeats it.
#include <gtest/gtest.h>

#include "account.hpp"

TEST(Account, IsNeverOverdrawn) {
  EXPECT_EQ(motet::testing::explore(1'000, withdraw_twice), 0);
}

/// A test per order, each with its seeds.
class AccountInOrder : public ::testing::TestWithParam<motet::testing::order> {};

TEST_P(AccountInOrder, IsNeverOverdrawn) {
  EXPECT_EQ(motet::testing::explore(300, withdraw_twice, {.how = GetParam()}), 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, AccountInOrder,
                         ::testing::Values(motet::testing::order::open, motet::testing::order::any,
                                           motet::testing::order::pct));
