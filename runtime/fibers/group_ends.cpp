// SPDX-License-Identifier: MIT
// See fibers/group_ends.hpp.
#include "fibers/group_ends.hpp"

#include <motet/detail/core/handle.hpp>
#include <utility>

#include "cancellation/asked.hpp"
#include "fibers/family.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void reserve_slot(group_family& group, thread_state& thread) {
  thread.deliver();
  if (group.owner == nullptr)
    interruption::throw_cancelled(interruption::reason("its group has ended"));
  if (group.size + group.promises < group.limit) {
    ++group.promises;
    return;
  }
  slot_wait wait;
  group.slot_waits.push_back(wait);
  const bool interrupted = thread.park(wait.wait) == wake_reason::interrupted;
  wait.unlink();
  if (interrupted) thread.throw_pending();
  if (wait.group_ended) interruption::throw_cancelled(interruption::reason("its group has ended"));
}

void offer_slot(group_family& group) noexcept {
  while (!group.closed && group.limit > group.size + group.promises) {
    slot_wait* first = group.slot_waits.pop_front();
    if (first == nullptr) return;
    if (!group.owner->home->resume(first->wait, wake_reason::handed)) continue;
    group.promisees.push_back(*first);
    ++group.promises;
  }
}

namespace {

void notify_of_news(group_family& group) noexcept {
  const bool awaited = group.owner_wait != nullptr && group.waits_until == until::news;
  if (awaited) group.owner->home->resume(*group.owner_wait, wake_reason::handed);
}

}  // namespace

/// A fiber without a handle is not recorded: otherwise a group that never ends would accumulate all
/// of its fibers.
void note_end(group_family& group, control_block& child, bool in_hand) noexcept {
  if (in_hand && !group.closed) {
    group.dead_fibers.push_back(child);
    notify_of_news(group);
  }
  offer_slot(group);
}

/// Failures of the previous round are destroyed by the reaper: the running fiber is nearly dead.
bool note_failure(group_family& group, control_block& child) noexcept {
  if (group.looked_after || std::exchange(group.failing, true)) {
    control_block** last = &group.other_failures;
    while (*last != nullptr) last = &cold(**last).next_failure;
    *last = &child;
    return false;
  }
  if (group.first_failure != nullptr) {
    home_of(child).cleaner.destroy_later(
        value_slot::holding(std::exchange(group.first_failure, nullptr)));
  }
  while (control_block* old = group.other_failures) {
    group.other_failures = std::exchange(cold(*old).next_failure, nullptr);
    release_later(*old);
  }
  group.first_failure = child.error;
  cancel_family(group, asked_by(child, "another fiber of its group has failed"));
  notify_of_news(group);
  return true;
}

/// Called on the owner's own stack.
void forget_ends(group_family& group) noexcept {
  while (group.dead_fibers.pop_front() != nullptr) {
  }
  while (slot_wait* wait = group.slot_waits.pop_front()) {
    wait->group_ended = true;
    group.owner->home->resume(wait->wait, wake_reason::handed);
  }
  while (slot_wait* wait = group.promisees.pop_front()) wait->group_ended = true;
  group.first_failure = nullptr;
  while (control_block* old = group.other_failures) {
    group.other_failures = std::exchange(cold(*old).next_failure, nullptr);
    release_at_home(*old);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
