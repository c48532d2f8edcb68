// SPDX-License-Identifier: MIT
// What the examples for three test frameworks test: an account that two customers share.
#pragma once

#include <chrono>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <mutex>
#include <stdexcept>

class account {
 public:
  explicit account(int balance) : balance_(balance) {}

  int balance() const { return balance_; }

  /// Returns: whether there was enough.
  bool withdraw(int amount) {
    const std::lock_guard hold(mutex_);
    if (balance_ < amount) return false;
    motet::sleep_for(std::chrono::milliseconds(20));  // asks the bank
    balance_ -= amount;
    return true;
  }

 private:
  motet::mutex mutex_;
  int balance_;
};

/// A simulation: of two withdrawals at random times one succeeds.
inline void withdraw_twice(motet::testing::world& world) {
  account shared(100);
  int withdrawals = 0;
  world.always([&] { return shared.balance() >= 0; });
  motet::group customers;
  for (int i = 0; i < 2; ++i) {
    customers.spin([&] {
      motet::sleep_for(std::chrono::milliseconds(world.random(100)));
      if (shared.withdraw(60)) ++withdrawals;
    });
  }
  customers.await_all();
  if (withdrawals != 1) throw std::logic_error("one of two withdrawals must succeed");
}
