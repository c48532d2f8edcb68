// SPDX-License-Identifier: MIT
// The timeline as a picture that a browser shows.
#pragma once

#include <cstdint>
#include <ostream>

#include "timeline.hpp"

namespace motet_trace {

/// Draws what happened from `from` to `to`, in nanoseconds: a row for each of the fibers that ran
/// longest, under a line for their thread.
void write_svg(const timeline& all, std::int64_t from, std::int64_t to, std::ostream& out);

}  // namespace motet_trace
