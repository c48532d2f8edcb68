// SPDX-License-Identifier: MIT
// A program of somebody else that simulates a program of fibers.
#include <chrono>
#include <iostream>
#include <motet/motet.hpp>
#include <motet/testing.hpp>

int main() {
  using namespace std::chrono_literals;
  const auto day = [](motet::testing::world& in) {
    motet::group sleepers;
    for (int i = 0; i < 10; ++i) sleepers.spin([&] { motet::sleep_for(1min * in.random(30)); });
    sleepers.await_all();
  };
  const int failed = motet::testing::explore(100, day);
  std::cout << "100 seeds, " << failed << " failed\n";
  return failed;
}
