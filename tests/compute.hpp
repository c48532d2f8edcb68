// SPDX-License-Identifier: MIT
// A computation that lasts.
#pragma once

#include <chrono>
#include <motet/motet.hpp>

#include "support.hpp"

namespace testing {

inline void compute_until(motet::clock::time_point end) {
  if (on_sim()) {
    // A computation takes no virtual time.
    while (motet::clock::now() < end) motet::sleep_for(std::chrono::nanoseconds(0));
  } else {
    while (std::chrono::steady_clock::now() < end) {
    }
  }
}

}  // namespace testing
