// SPDX-License-Identifier: MIT
// See run_here.hpp.
#include "run_here.hpp"

#include <functional>
#include <motet/runtime/run.hpp>

#include "quiet.hpp"

namespace testing {

void run_here(const std::function<void()>& function) {
  motet::run(quiet(), function);
}

}  // namespace testing
