// SPDX-License-Identifier: MIT
// The timeline as a file that Perfetto's page opens.
#pragma once

#include <ostream>

#include "timeline.hpp"

namespace motet_trace {

/// Writes a track for each thread with the slices of its fibers, and arrows from the slice of a
/// fiber that wakes another one to the next slice of that. The timeline must have arrows.
/// Source: the Fuchsia trace format, of Fuchsia's reference pages.
void write_fxt(const timeline& history, std::ostream& output);

}  // namespace motet_trace
