// SPDX-License-Identifier: MIT
// The delays of caches.
#pragma once

#include <chrono>
#include <motet/motet.hpp>
#include <thread>

#include "this_thread.hpp"

namespace fetch_test {

enum class nap { of_the_fiber, of_the_thread };

/// A nap of the thread is a mistake that the checks make on purpose.
inline void take(nap kind, std::chrono::milliseconds length) {
  if (length.count() <= 0) return;
  if (kind == nap::of_the_thread) {
    std::this_thread::sleep_for(length);
    return;
  }
  const pause sleep;
  motet::sleep_for(length);
}

}  // namespace fetch_test
