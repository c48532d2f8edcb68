// SPDX-License-Identifier: MIT
// Options that the environment chooses where the program does not.
#pragma once

#include <motet/runtime/options.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: `settings`, with MOTET_STALL_REPORT, MOTET_OFFLOAD_LIMIT and MOTET_TRACE_RECORDS where
///          they have their defaults.
/// Throws: std::invalid_argument if a variable is no number, or out of range.
options completed_by_environment(const options& settings);

}}}  // namespace motet::MOTET_ABI::detail
