// SPDX-License-Identifier: MIT
// The last line of a run: its outcomes, and its longest delays.
#pragma once

#include <string>
#include <vector>

#include "house.hpp"

namespace fetch_test {

/// Returns: a line of JSON.
std::string summarize(house& home, const std::vector<outcome>& outcomes);

}  // namespace fetch_test
