// SPDX-License-Identifier: MIT
// How the test files begin that also run in simulated worlds: run_here.cpp is how most programs do
// it, testing/in_world.cpp is how one does whose name ends in _in_world.
#pragma once

#include <functional>

namespace testing {

/// Calls `function` as the main fiber of a quiet runtime, or as a fiber of a simulated world.
void run_here(const std::function<void()>& function);
/// Returns: whether all tests of this program are to run again, in other worlds.
bool next_round();

}  // namespace testing
