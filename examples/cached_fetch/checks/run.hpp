// SPDX-License-Identifier: MIT
// Playing a check.
#pragma once

#include <functional>

#include "../options.hpp"
#include "../report.hpp"

namespace cached_fetch {

/// Calls `play`, after which no thread and no descriptor may be left that was not there before.
void play_whole(report& found, const std::function<void()>& play);

/// Says what it finds.
/// Returns: whether all of it held.
/// Throws: std::invalid_argument if there is no such check.
bool run_check(const options& all);

}  // namespace cached_fetch
