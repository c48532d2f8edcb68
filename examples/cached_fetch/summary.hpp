// SPDX-License-Identifier: MIT
// The last line of a run: what became of the requests, and how smoothly it went.
#pragma once

#include <string>
#include <vector>

#include "house.hpp"

namespace cached_fetch {

/// Returns: a line of JSON.
std::string summarize(house& its, const std::vector<outcome>& outcomes);

}  // namespace cached_fetch
