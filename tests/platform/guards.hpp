// SPDX-License-Identifier: MIT
// How many fibers with guarded stacks this kernel allows.
#pragma once

#include "platform/guard.hpp"

namespace testing {

/// Whether each guard takes mappings, of which about 16,000 guards use up half: before Linux 6.13,
/// which has MADV_GUARD_INSTALL.
inline bool guards_take_mappings() {
  return motet::detail::best_guard() == motet::detail::guard_kind::protection;
}

}  // namespace testing
