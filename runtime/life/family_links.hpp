// SPDX-License-Identifier: MIT
// How a child leaves its family, and whether a family still exists and can be joined.
#pragma once

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether fibers can be spun in `wanted`, which is compared by its address only: a group may be
/// destroyed while a fiber waits to spin in it.
inline bool stands(control_block& owner, const family& wanted) noexcept {
  const family* each = &cold(owner).own;
  while (each != nullptr && each != &wanted) each = each->next;
  return each != nullptr && !each->closed;
}

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

}}}  // namespace motet::MOTET_ABI::detail
