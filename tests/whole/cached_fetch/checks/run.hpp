// SPDX-License-Identifier: MIT
// Plays a check by its name.
#pragma once

#include <functional>

#include "../options.hpp"
#include "../report.hpp"

namespace fetch_test {

/// Calls `play`, which must leave no thread and no descriptor behind.
void play_whole(report& findings, const std::function<void()>& play);

/// Prints its findings.
/// Returns: whether the check holds.
/// Throws: std::invalid_argument if there is no such check.
bool run_check(const options& settings);

}  // namespace fetch_test
