// SPDX-License-Identifier: MIT
// See run_here.hpp.
#include "run_here.hpp"

namespace testing {

bool next_round() {
  return false;
}

}  // namespace testing
