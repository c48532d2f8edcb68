// SPDX-License-Identifier: MIT
// The flight recorder: with options.trace or MOTET_TRACE each thread records in a file when each
// fiber starts and stops running, what it waits for, and who wakes it. The file is mapped, so that
// it is intact even after the process has crashed; motet-trace reads it.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI {

/// Writes what has been recorded so far to another file, which motet-trace reads as well; the file
/// is new, or replaces an earlier trace. No thread is stopped, but a runtime that begins or ends
/// meanwhile waits for as long as the disk takes, as the caller does. Any thread.
/// Not a switchpoint.
/// Returns: false if the process records nothing.
/// Throws: std::system_error; std::invalid_argument if `file` is the one being recorded to, or is
///         not a trace.
bool save_trace(const std::string& file);

}}  // namespace motet::MOTET_ABI
