// SPDX-License-Identifier: MIT
// See fibers/family.hpp.
#include "fibers/family.hpp"

#include <atomic>
#include <motet/detail/fibers/bad_body.hpp>
#include <new>
#include <string>
#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/child_failures.hpp"
#include "cancellation/interrupt.hpp"
#include "fibers/group_ends.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void cancel_family(family& children, const cancel_reason& reason) noexcept {
  for (control_block* child = children.children.front(); child != nullptr;
       child = children.children.next(*child)) {
    cancel_here(*child, reason);
  }
}

void end_family(family& children, const char* reason) noexcept {
  control_block& owner = *children.owner;
  if (children.size > 0) cancel_family(children, asked_by(owner, reason));
  if (cold(owner).escalated) {
    terminate_family(children, clock::duration::zero(), termination_by(owner));
  }
  await_family(children, until::all_over, false);
}

void warn_of_unawaited(const family& children, thread_state& home, const char* whose_end) noexcept {
  const control_block& owner = *children.owner;
  const bool ends_itself = home.exceptions().uncaught > 0 || owner.interrupts != 0;
  if (!debugged_program.load(std::memory_order_relaxed) || children.lasting_count == 0 ||
      ends_itself)
    return;
  try {
    list<control_block, children_tag>& members = const_cast<family&>(children).children;
    const control_block* first = members.front();
    while (first->transient) first = members.next(*const_cast<control_block*>(first));
    const char* fibers = children.lasting_count == 1 ? " fiber that was" : " fibers that were";
    std::string text = std::string("the end of ") + whose_end + " cancels " +
                       std::to_string(children.lasting_count) + fibers +
                       " never awaited (the first was spun at " + first->site.file + ":" +
                       std::to_string(first->site.line) +
                       "): call await_all(), or spin them as transient";
    notice(home.settings(), text);
  } catch (const std::bad_alloc&) {
    // A notice is no reason to fail.
  }
}

wake_reason await_family(family& children, until goal, bool interruptible) noexcept {
  while (!children.satisfied(goal)) {
    const wake_reason reason = await_once(children, goal, interruptible);
    if (reason != wake_reason::handed) return reason;
  }
  return wake_reason::handed;
}

wake_reason await_once(family& children, until goal, bool interruptible) noexcept {
  wait_record wait("its children");
  wait.interruptible = interruptible;
  children.waits_until = goal;
  children.owner_wait = &wait;
  thread_state& thread = *self();
  refresh_failures(thread.running());
  const wake_reason reason = thread.park(wait);
  children.owner_wait = nullptr;
  if (reason != wake_reason::handed) refresh_failures(thread.running());
  return reason;
}

/// If the running fiber, or an ancestor of it, belongs to `group`, the end of the group cannot wait
/// for that fiber: it is cancelled, and leaves the group for the family of the group's owner.
void move_to_owner(family& group, thread_state& thread) noexcept {
  for (control_block* line = &thread.running(); line != nullptr && thread.is_home_of(*line);
       line = line->parent) {
    if (line->belongs_to != &group) continue;
    cancel_here(*line, asked_here("its group has ended"));
    leave_family(*line);
    join_family(*line, cold(*group.owner).own_family);
    return;
  }
}

/// A group that outlives its owner's body has no owner and no fibers from now on: its fibers move
/// to the owner's own family, so that the group may be destroyed during the wait.
void end_children(control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  if (part == nullptr) return;
  part->own_family.closed = true;
  while (family* group = part->own_family.next) {
    group->closed = true;
    while (control_block* child = group->children.front()) {
      leave_family(*child);
      join_family(*child, part->own_family);
    }
    leave_owner(static_cast<group_family&>(*group));
  }
  ++fiber.shields;
  end_family(part->own_family, "its parent has ended");
  --fiber.shields;
}

bool end_own_children(const char* reason) noexcept {
  control_block& fiber = self()->running();
  cold_part* part = cold_if_any(fiber);
  if (part == nullptr) return false;
  ++fiber.shields;
  end_family(part->own_family, reason);
  --fiber.shields;
  return true;
}

family& children_of_main(thread_state& home) noexcept {
  return cold(home.main_fiber()).own_family;
}

void enter_owner(family& group, thread_state& thread) noexcept {
  family& first = cold(thread.running()).own_family;
  group.owner = &thread.running();
  group.next = first.next;
  first.next = &group;
  if (thread.foreign) group.closed = true;
}

/// Failures that the owner has not been told of stay with the owner.
void leave_owner(group_family& group) noexcept {
  forget_ends(group);
  family** link = &cold(*group.owner).own_family.next;
  while (*link != &group) link = &(*link)->next;
  *link = group.next;
  control_block& owner = *std::exchange(group.owner, nullptr);
  for (control_block* child = cold(owner).failures; child != nullptr;
       child = cold(*child).next_failure) {
    if (child->belongs_to == &group) child->belongs_to = nullptr;
  }
  refresh_failures(owner);
}

/// Called when no fiber awaits `child`, whose children have ended. The owner of a group is told of
/// its first failure only.
void report_failure(control_block& child) noexcept {
  family& group = *child.belongs_to;
  control_block& parent = *group.owner;
  ++child.references;
  if (group.is_group && !note_failure(static_cast<group_family&>(group), child)) return;
  cold(child).reported_to = &parent;
  control_block** last = &cold(parent).failures;
  while (*last != nullptr) last = &cold(**last).next_failure;
  *last = &child;
  refresh_failures(parent);
}

}}}  // namespace motet::MOTET_ABI::detail
