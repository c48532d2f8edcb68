// SPDX-License-Identifier: MIT
// A timeout made by hand: a second fiber sleeps and raises an exception in the first, which may be
// waiting for anything. (motet::move_on_after() does it without a fiber.) Run: timeout
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <stdexcept>

using namespace std::chrono_literals;

int main() {
  struct too_late : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  auto timer = motet::spin([sleeper = motet::current()] {
    motet::sleep_for(50ms);
    sleeper.raise(too_late("50 ms are over"));
  });
  try {
    std::puts("waiting for something that takes an hour");
    motet::sleep_for(1h);
  } catch (const too_late& e) {
    std::printf("interrupted: %s\n", e.what());
  }

  const bool in_time = motet::move_on_after(50ms, [] { motet::sleep_for(1h); });
  std::printf("and without a second fiber: %s\n", in_time ? "in time" : "moved on");
}
