// SPDX-License-Identifier: MIT
// A runtime for tests with several threads. Virtual time runs ahead of other threads, so one that
// waits for them seems stuck.
#pragma once

#include <chrono>
#include <motet/run.hpp>

namespace testing {

inline motet::options quiet() {
  motet::options chosen;
  chosen.deadlock_report = std::chrono::milliseconds(0);
  return chosen;
}

/// Calls `function` as the main fiber of a quiet runtime.
template <typename F>
void run_here(F function) {
  motet::run(quiet(), function);
}

}  // namespace testing
