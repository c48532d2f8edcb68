// SPDX-License-Identifier: MIT
// A program of somebody else whose fibers call a function of the C library that blocks.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <motet/motet.hpp>
#include <motet/posix.hpp>

int main() {
  using namespace std::chrono_literals;
  if (motet::posix::switches()) return 1;
  const auto start = std::chrono::steady_clock::now();
  motet::group sleepers;
  for (int i = 0; i < 20; ++i) sleepers.spin([] { ::usleep(50'000); });
  sleepers.await_all();
  const auto span = std::chrono::steady_clock::now() - start;
  std::cout << "20 calls of 50 ms took " << span / 1ms << " ms\n";
  return span < 500ms ? 0 : 1;
}
