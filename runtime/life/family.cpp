// SPDX-License-Identifier: MIT
// Parents and children: which fiber is told of a failure, and how a parent outlives its children.
#include <utility>

#include "life/family_links.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void thread_state::cancel_family(family& children, const char* reason, call_site site) noexcept {
  for (control_block* child = children.children.front(); child != nullptr;
       child = children.children.next(*child)) {
    cancel(*child, reason, site);
  }
}

wake_reason thread_state::await_family(family& children, until goal, bool interruptible) noexcept {
  while (!children.satisfied(goal)) {
    const wake_reason reason = await_once(children, goal, interruptible);
    if (reason != wake_reason::handed) return reason;
  }
  return wake_reason::handed;
}

wake_reason thread_state::await_once(family& children, until goal, bool interruptible) noexcept {
  wait_record wait("its children");
  wait.interruptible = interruptible;
  children.waits_until = goal;
  children.waiter = &wait;
  refresh_failures(*running_);
  const wake_reason reason = park(wait);
  children.waiter = nullptr;
  if (reason != wake_reason::handed) refresh_failures(*running_);
  return reason;
}

/// If the running fiber, or an ancestor of it, belongs to `group`, the end of the group cannot wait
/// for that fiber: it is cancelled, and leaves the group for the family of the group's owner.
void thread_state::leave_to_owner(family& group) noexcept {
  for (control_block* line = running_; line != nullptr && is_home_of(*line); line = line->parent) {
    if (line->belongs_to != &group) continue;
    cancel(*line, "its group has ended", {});
    leave_family(*line);
    join_family(*line, cold(*group.owner).own);
    return;
  }
}

/// A group that outlives its owner's body has no owner and no fibers from now on: its fibers move
/// to the owner's own family, so that the group may be destroyed during the wait.
void thread_state::end_children(control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  if (part == nullptr) return;
  part->own.closed = true;
  while (family* group = part->own.next) {
    group->closed = true;
    while (control_block* child = group->children.front()) {
      leave_family(*child);
      join_family(*child, part->own);
    }
    leave_owner(static_cast<group_family&>(*group));
  }
  cancel_family(part->own, "its parent has ended");
  ++fiber.shields;
  await_family(part->own, until::all_over, false);
  --fiber.shields;
}

void thread_state::enter_owner(family& group) noexcept {
  family& own = cold(*running_).own;
  group.owner = running_;
  group.next = own.next;
  own.next = &group;
  if (foreign_) group.closed = true;
}

/// Failures that the owner has not been told of stay with the owner.
void thread_state::leave_owner(group_family& group) noexcept {
  forget_ends(group);
  family** place = &cold(*group.owner).own.next;
  while (*place != &group) place = &(*place)->next;
  *place = group.next;
  control_block& owner = *std::exchange(group.owner, nullptr);
  for (control_block* failed = cold(owner).failures; failed != nullptr;
       failed = cold(*failed).next_failure) {
    if (failed->belongs_to == &group) failed->belongs_to = nullptr;
  }
  refresh_failures(owner);
}

/// Called when no fiber awaits `failed`, whose children have ended. The owner of a group is told of
/// its first failure only.
void thread_state::report_failure(control_block& failed) noexcept {
  family& from = *failed.belongs_to;
  control_block& parent = *from.owner;
  retain(failed);
  if (from.is_group && !note_failure(static_cast<group_family&>(from), failed)) return;
  cold(failed).told_to = &parent;
  control_block** last = &cold(parent).failures;
  while (*last != nullptr) last = &cold(**last).next_failure;
  *last = &failed;
  refresh_failures(parent);
}

control_block* thread_state::take_failure(control_block& parent, const family* from) noexcept {
  cold_part* part = cold_if_any(parent);
  if (part == nullptr) return nullptr;
  control_block** place = &part->failures;
  while (*place != nullptr && from != nullptr && (*place)->belongs_to != from) {
    place = &cold(**place).next_failure;
  }
  control_block* taken = *place;
  if (taken == nullptr) return nullptr;
  *place = std::exchange(cold(*taken).next_failure, nullptr);
  cold(*taken).told_to = nullptr;
  return taken;
}

void thread_state::forget_failure(control_block& parent, control_block& failed) noexcept {
  control_block** place = &cold(parent).failures;
  while (*place != &failed) place = &cold(**place).next_failure;
  *place = std::exchange(cold(failed).next_failure, nullptr);
  cold(failed).told_to = nullptr;
  refresh_failures(parent);
  release(failed);
}

/// Called when another fiber has claimed the failure of a dead fiber before its parent was told.
void thread_state::withdraw_failure(control_block& failed) noexcept {
  cold_part* part = cold_if_any(failed);
  if (part != nullptr && part->told_to != nullptr) forget_failure(*part->told_to, failed);
}

void thread_state::spare_keeper_of(const control_block& failed) noexcept {
  control_block* parent = failed.parent;
  cold_part* part = parent != nullptr && is_home_of(*parent) ? cold_if_any(*parent) : nullptr;
  if (part == nullptr) return;
  for (control_block* told = part->failures; told != nullptr; told = cold(*told).next_failure) {
    if (told->error != failed.error) continue;
    // await() has just told the running fiber. If that is the parent, it is not told again, even if
    // it was woken for the failure; another fiber spares the parent only if it was not woken.
    if (parent == running_ || cold(*told).told_to != nullptr) forget_failure(*parent, *told);
    return;
  }
  auto& children = part->own.children;
  for (control_block* each = children.front(); each != nullptr; each = children.next(*each)) {
    cold_part* its = cold_if_any(*each);
    if (its != nullptr && its->stands_for == &failed) its->spared = true;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
