// SPDX-License-Identifier: MIT
// Parents and children: how a parent outlives its children, and which child's failure it receives.
// On the owner's thread.
#pragma once

#include <motet/base/call_site.hpp>
#include <motet/detail/core/family.hpp>
#include <motet/detail/core/wait_record.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether `group` is still an open family of `owner`. Only its address is used: the group may
/// have been destroyed while a fiber that is not its owner waited.
inline bool stands(control_block& owner, const family& group) noexcept {
  const family* candidate = &cold(owner).own_family;
  while (candidate != nullptr && candidate != &group) candidate = candidate->next;
  return candidate != nullptr && !candidate->closed;
}

inline void leave_family(control_block& child) noexcept {
  family& group = *child.belongs_to;
  list<control_block, children_tag>::remove(child);
  --group.size;
  if (!child.transient) --group.lasting_count;
  if (group.size == 0) group.failing = false;
  if (group.owner_wait != nullptr && group.satisfied(group.waits_until)) {
    child.home->resume(*group.owner_wait, wake_reason::handed);
  }
}

void cancel_family(family& children, const cancel_reason& reason) noexcept;
/// Cancels the children, terminates them if their owner's grace is over, and waits for their end.
void end_family(family& children, const char* reason) noexcept;
/// The running fiber waits until the family's children are over; an interruption ends the wait (if
/// it may).
wake_reason await_family(family& children, until goal, bool interruptible) noexcept;
wake_reason await_once(family& children, until goal, bool interruptible) noexcept;
/// Cancels the children of `fiber`, which runs, in every family, and awaits them.
[[gnu::noinline]] void end_children(control_block& fiber) noexcept;
/// Ends the running fiber's children outside of groups, and waits for their end.
/// Returns: whether some may have failed: take_error_of_child() gives what they threw.
bool end_own_children(const char* reason) noexcept;

/// Returns: the children of the main fiber, outside of groups.
family& children_of_main(thread_state& home) noexcept;
/// Makes `group` a family of the running fiber, and removes it from those of its former owner.
void enter_owner(family& group, thread_state& thread) noexcept;
void leave_owner(group_family& group) noexcept;
/// The running fiber, or an ancestor, becomes its group's owner's own child if it is in `group`.
void move_to_owner(family& group, thread_state& thread) noexcept;

/// A dead fiber's failure goes to its parent, or to its group.
[[gnu::noinline]] void report_failure(control_block& child) noexcept;

/// In a program that was compiled for debugging: gives notice that fibers nobody has waited for are
/// about to be cancelled, unless the owner is ended itself. `whose_end`: "its group", for people.
void warn_of_unawaited(const family& children, thread_state& home, const char* whose_end) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
