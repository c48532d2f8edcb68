// SPDX-License-Identifier: MIT
// How many requests a second, for bench/compare_fetch.py.
#pragma once

#include <string>

#include "options.hpp"

namespace cached_fetch {

/// Fetches as many keys that no cache has, so many at a time.
/// Returns: a line of JSON.
/// Throws: std::runtime_error if one of them could not be fetched.
std::string run_load(const options& all);

}  // namespace cached_fetch
