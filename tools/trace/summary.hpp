// SPDX-License-Identifier: MIT
// The first thing that motet-trace prints.
#pragma once

#include <ostream>

#include "timeline.hpp"

namespace motet_trace {

/// Writes a line about the trace, one about each thread, and where the time went.
void tell_summary(const timeline& history, std::ostream& output);

}  // namespace motet_trace
