// SPDX-License-Identifier: MIT
// A thread that waits to be given work, and what tells whether the work was destroyed.
#pragma once

#include <atomic>
#include <motet/motet.hpp>
#include <utility>

#include "quiet.hpp"

namespace testing::on_threads {

/// One that waits to be given work.
inline motet::thread idle_thread() {
  return motet::thread(quiet(), [] { motet::sleep(); });
}

/// Says when it is destroyed.
struct witness {
  explicit witness(std::atomic<int>& deaths) : counter(&deaths) {}
  witness(witness&& source) noexcept : counter(std::exchange(source.counter, nullptr)) {}
  ~witness() {
    if (counter != nullptr) ++*counter;
  }
  std::atomic<int>* counter;
};

}  // namespace testing::on_threads
