// SPDX-License-Identifier: MIT
// Whether the thread of a runtime records, and to which file.
#pragma once

#include <memory>
#include <motet/runtime/options.hpp>

#include "observe/recording/recorder.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Throws: std::invalid_argument.
void check_trace(const trace_options& settings);
/// Returns: null if neither the options nor MOTET_TRACE ask for one, or MOTET_TRACE asks for a file
///          that cannot be written, which a notice says.
/// Throws: std::system_error, std::bad_alloc; std::invalid_argument if the process records to
///         another file.
std::unique_ptr<recorder> recorder_for(const options& settings);
/// Starts recording on `thread`, which has just been created.
void record(thread_state& thread, std::unique_ptr<event_recorder> recording) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
