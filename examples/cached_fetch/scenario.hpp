// SPDX-License-Identifier: MIT
// What the program plays when it is given nothing to do.
#pragma once

#include <iosfwd>

namespace cached_fetch {

/// Writes the events, then the summary to standard output.
/// Returns: whether everything was as it should be.
bool play_scenario(std::ostream& events);

}  // namespace cached_fetch
