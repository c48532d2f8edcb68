// SPDX-License-Identifier: MIT
// A program that is not linked with motet-posix. It prints whether blocking calls of its fibers
// wait at the same time; preload_test.py runs it with the library and without.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <motet/motet.hpp>

int main() {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  motet::run([] {
    motet::group sleepers;
    for (int i = 0; i < 20; ++i) sleepers.spin([] { ::usleep(20'000); });
    sleepers.await_all();
  });
  const auto span = std::chrono::steady_clock::now() - start;
  std::cout << (span < 400ms ? "together" : "one after the other") << '\n';
}
