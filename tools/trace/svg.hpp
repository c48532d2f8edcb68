// SPDX-License-Identifier: MIT
// The timeline as a picture that a browser shows.
#pragma once

#include <cstdint>
#include <ostream>

#include "timeline.hpp"

namespace motet_trace {

/// Draws what happened from `begin` to `end`, in nanoseconds: a row for each of the fibers that ran
/// longest, under a line for their thread.
void write_svg(const timeline& history, std::int64_t begin, std::int64_t end, std::ostream& output);

}  // namespace motet_trace
