// SPDX-License-Identifier: MIT
// A pause in which everybody else gets as far as they can.
#pragma once

#include <motet/fibers/fiber.hpp>

namespace testing {

/// Lets every runnable fiber run until all wait.
inline void settle() {
  for (int i = 0; i < 10; ++i) motet::snooze();
}

}  // namespace testing
