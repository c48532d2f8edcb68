// SPDX-License-Identifier: MIT
// How a child leaves its family.
#pragma once

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

inline void thread_state::leave_family(control_block& child) noexcept {
  family& left = *child.belongs_to;
  list<control_block, children_tag>::remove(child);
  --left.size;
  if (!child.transient) --left.lasting;
  if (left.size == 0) left.failing = false;
  if (left.waiter != nullptr && left.satisfied(left.waits_until)) {
    resume(*left.waiter, wake_reason::handed);
  }
}

}  // namespace motet::inline MOTET_ABI::detail
