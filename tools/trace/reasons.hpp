// SPDX-License-Identifier: MIT
// Why fibers were late, in sentences.
#pragma once

#include <ostream>

#include "timeline.hpp"

namespace motet_trace {

/// Writes the worst delays, one for each slice that is to blame.
void tell_why_late(const timeline& history, std::ostream& output);
/// Writes which slices were longest.
void tell_longest_slices(const timeline& history, std::ostream& output);
/// Writes what fibers handed on to one another and waited for longest.
void tell_contention(const timeline& history, std::ostream& output);
/// Writes which fibers have waited for longest at the end.
void tell_waiting(const timeline& history, std::ostream& output);

}  // namespace motet_trace
