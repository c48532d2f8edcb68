// SPDX-License-Identifier: MIT
// Half a second of a user who asks for several values at once.
#pragma once

#include <iosfwd>

namespace fetch_test {

/// Writes the events, then the summary to standard output.
/// Returns: whether every request ended as it should.
bool play_story(std::ostream& events);

}  // namespace fetch_test
