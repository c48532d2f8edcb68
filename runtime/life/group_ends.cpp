// SPDX-License-Identifier: MIT
// What a group notes when a fiber of it ends: room for another one, the end itself for next(), and
// the failure.
#include <utility>

#include "life/family_links.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct room_wait : tagged_link<room_tag> {
  wait_record wait{"room in a group"};
  bool group_ended = false;
};

void thread_state::take_room(group_family& group) {
  deliver();
  if (group.owner == nullptr) interruption::throw_cancelled("its group has ended", 0, {});
  if (group.size + group.promises < group.limit) {
    ++group.promises;
    return;
  }
  room_wait waiting;
  group.for_room.push_back(waiting);
  const bool interrupted = park(waiting.wait) == wake_reason::interrupted;
  waiting.unlink();
  if (interrupted) throw_pending();
  if (waiting.group_ended) interruption::throw_cancelled("its group has ended", 0, {});
}

void thread_state::pass_room(group_family& group) noexcept {
  while (!group.closed && group.limit > group.size + group.promises) {
    room_wait* first = group.for_room.pop_front();
    if (first == nullptr) return;
    if (!resume(first->wait, wake_reason::handed)) continue;
    group.promised.push_back(*first);
    ++group.promises;
  }
}

/// Only fibers with a handle (`in_hand`) are remembered for next(): otherwise a group that goes on
/// for ever would gather dead fibers.
void thread_state::tell_group(group_family& group, control_block& ended, bool in_hand) noexcept {
  if (in_hand && !group.closed) {
    group.ended.push_back(ended);
    tell_news(group);
  }
  pass_room(group);
}

void thread_state::tell_news(group_family& group) noexcept {
  const bool awaited = group.waiter != nullptr && group.waits_until == until::news;
  if (awaited) resume(*group.waiter, wake_reason::handed);
}

/// The first failure since the group was empty cancels the rest of the group, and the failures of
/// the round before are forgotten; another fiber destroys these, for the running one is ending.
/// Returns: whether `failed` is the first failure.
bool thread_state::note_failure(group_family& group, control_block& failed) noexcept {
  if (group.looked_after || std::exchange(group.failing, true)) {
    control_block** last = &group.other_failures;
    while (*last != nullptr) last = &cold(**last).next_failure;
    *last = &failed;
    return false;
  }
  if (group.first_failure != nullptr) {
    drop_later(value_slot::holding(std::exchange(group.first_failure, nullptr)));
  }
  while (control_block* old = group.other_failures) {
    group.other_failures = std::exchange(cold(*old).next_failure, nullptr);
    release_later(*old);
  }
  group.first_failure = failed.error;
  cancel_family(group, "another fiber of its group has failed");
  tell_news(group);
  return true;
}

/// Called on the owner's own stack.
void thread_state::forget_ends(group_family& group) noexcept {
  while (group.ended.pop_front() != nullptr) {
  }
  while (room_wait* waiting = group.for_room.pop_front()) {
    waiting->group_ended = true;
    resume(waiting->wait, wake_reason::handed);
  }
  while (room_wait* waiting = group.promised.pop_front()) waiting->group_ended = true;
  group.first_failure = nullptr;
  while (control_block* old = group.other_failures) {
    group.other_failures = std::exchange(cold(*old).next_failure, nullptr);
    release(*old);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
