// SPDX-License-Identifier: MIT
// How quick motet is here, with and without each feature of the kernel.
#pragma once

#include <ostream>

namespace motet_doctor {

/// Runs in its own process, with a clean environment, and writes the figures to stdout.
void measure();

/// Writes a table, for which this program is started again and again, for two seconds in all.
void tell_figures(std::ostream& output);

}  // namespace motet_doctor
