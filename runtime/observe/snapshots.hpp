// SPDX-License-Identifier: MIT
// Copies of the trace file: see unhandled/snapshots.hpp.
#pragma once

#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As save_snapshot().
void copy_trace(snapshot_cause cause) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
