// SPDX-License-Identifier: MIT
// Copies of the trace file that are made when something has gone wrong, before the rings go on and
// forget why.
#pragma once

#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// If the process records, copies the recording to FILE.CAUSE-N: for each cause at most one per
/// second, and four in all, except for the signal. Blocks the thread while the disk writes.
inline void save_snapshot(snapshot_cause cause) noexcept {
  if (hooks.save_snapshot != nullptr) hooks.save_snapshot(cause);
}

}}}  // namespace motet::MOTET_ABI::detail
