// SPDX-License-Identifier: MIT
// See testing/order_of_world.hpp.
#include "testing/order_of_world.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <motet/detail/core/cold_part.hpp>
#include <utility>

#include "base/saved_errno.hpp"
#include "cancellation/asked.hpp"
#include "cancellation/remote_verbs.hpp"
#include "testing/hosts.hpp"
#include "testing/net/machine.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

using testing::choice;
using testing::text_of;

/// A switch is a step, also if the next fiber is not known yet.
void order_of_world::note_switch(const control_block& previous, const control_block*) noexcept {
  snoozes_ = previous.state.load(std::memory_order_relaxed) == fiber_state::runnable;
  inside_.step();
  if (!inside_.failed() && !inside_.invariants.empty()) check_invariants();
  if (inside_.net.any_crashed()) cancel_orphan(home_.running());
  change_priorities(previous);
  choose_next();
  inside_.report_difference(previous.site);
  if (snoozes_ && !home_.anything_pending()) inside_.threads.pass_moment();
  inside_.threads.pass_on(snoozes_);
}

/// A fiber of a host that has crashed, which its host's program cannot cancel: a job of a pool.
void order_of_world::cancel_orphan(control_block& running) noexcept {
  if (!running.has_cold_part || cold(running).locals.empty()) return;
  const testing::residence& home = testing::present_residence();
  if (home.owner == nullptr || home.alive()) return;
  cancel(traveller_of(running), asked_here(testing::host_crashed, running.site));
}

/// A switch within one ends the process, as within a no_switch_guard.
void order_of_world::check_invariants() {
  const int until_look = home_.until_look_;
  const int held_back = home_.held_back_;
  const saved_errno errno_guard(home_.error_number());
  for (std::size_t i = 0; i < inside_.invariants.size(); ++i) {  // one may add others
    const testing::invariant& each = inside_.invariants[i];
    const call_site* const outer = home_.forbid_switches(&each.site);
    try {
      if (!each.holds()) inside_.fail("the invariant of " + text_of(each.site) + " does not hold");
    } catch (...) {
      inside_.fail("the invariant of " + text_of(each.site) +
                   " threw: " + text_of(std::current_exception()));
    }
    home_.forbid_switches(outer);
  }
  home_.until_look_ = until_look;
  home_.held_back_ = held_back;
}

/// What a poll completes has no order, nor have timers of one instant; but timers of different
/// instants have.
void order_of_world::woken_by(trace::cause cause) noexcept {
  in_poll_ = cause == trace::cause::operation;
  if (in_poll_) woken_.clear();
  instant_ = 0;
  late_ = clock::duration(-1);
}

void order_of_world::timer_is_late(clock::duration late) noexcept {
  if (std::exchange(late_, late) != late) ++instant_;
}

void order_of_world::note_wake(const control_block&) noexcept {
  if (in_poll_) woken_.push_back(instant_);
}

/// A fiber that is the first in line again after its snooze() keeps its place. A poll of a fiber
/// that goes on is a step as well.
void order_of_world::note_poll(std::size_t, bool by_itself) noexcept {
  in_poll_ = false;
  if (by_itself) inside_.step();
  if (inside_.settings().how == testing::order::open && woken_.size() > 1) shuffle_woken();
  if (inside_.threads.is_first()) inside_.end_function();
  const bool is_first_again = snoozes_ && home_.first_runnable() == &home_.running();
  if (!by_itself && !is_first_again) choose_next();
}

/// The fibers that the poll has woken are the last ones in the queue.
void order_of_world::shuffle_woken() {
  run_queue<control_block>& queue = home_.queue_;
  room_.clear();
  while (!queue.empty()) room_.push_back(&queue.pop_front());
  const auto first = room_.end() - static_cast<std::ptrdiff_t>(woken_.size());
  for (std::size_t i = 0; i < woken_.size();) {
    std::size_t end = i;
    while (end < woken_.size() && woken_[end] == woken_[i]) ++end;
    for (; i + 1 < end; ++i) {
      const auto taken = inside_.choices.decide(choice::wake, static_cast<std::uint32_t>(end - i));
      std::swap(first[static_cast<std::ptrdiff_t>(i)],
                first[static_cast<std::ptrdiff_t>(i + taken)]);
    }
    i = end;
  }
  woken_.clear();
  for (control_block* const fiber : room_) queue.push_back(*fiber);
}

/// The others keep their order, one after another in a circle.
void order_of_world::choose_next() {
  run_queue<control_block>& queue = home_.queue_;
  if (inside_.settings().how == testing::order::open || queue.size() < 2) return;
  std::size_t places =
      inside_.settings().how == testing::order::pct
          ? highest_priority()
          : inside_.choices.decide(choice::next, static_cast<std::uint32_t>(queue.size()));
  for (; places > 0; --places) queue.push_back(queue.pop_front());
  // In a ring a fiber that snoozes must not be the first.
  if (queue.in_ring() && queue.front() == &home_.running()) queue.push_back(queue.pop_front());
}

/// Returns: the place of that fiber in the queue, the first one if there are several.
std::size_t order_of_world::highest_priority() {
  run_queue<control_block>& queue = home_.queue_;
  std::size_t best = 0;
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0, size = queue.size(); i < size; ++i) {
    control_block& fiber = queue.pop_front();
    const std::int64_t priority = priority_of(fiber);
    if (priority > highest) best = i;
    highest = std::max(highest, priority);
    queue.push_back(fiber);
  }
  return best;
}

std::int64_t order_of_world::priority_of(const control_block& fiber) {
  constexpr std::uint32_t priorities = 1'000;
  const auto [found, is_new] = priorities_.try_emplace(fiber.id, 0);
  if (is_new) found->second = inside_.choices.decide(choice::next, priorities);
  return found->second;
}

/// Source: Burckhardt, Kothari, Musuvathi, Nagarakatte, A Randomized Scheduler with Probabilistic
/// Guarantees of Finding Bugs, 2010.
/// A fiber that snoozes lets all others run, or a loop that waits for one of them would not end.
void order_of_world::change_priorities(const control_block& running) {
  if (inside_.settings().how != testing::order::pct) return;
  const bool is_due = inside_.priorities_change();
  if (!snoozes_ && !is_due) return;
  priorities_[running.id] = --lowest_;
  inside_.threads.lower_priority();
}

std::optional<std::size_t> order_of_world::choose_branch(std::size_t count) noexcept {
  return inside_.choices.decide(choice::branch, static_cast<std::uint32_t>(count));
}

}}}  // namespace motet::MOTET_ABI::detail
