// SPDX-License-Identifier: MIT
// What is beside the path of a switch. See detail/core/switchpoint.hpp.
#include <cstdio>
#include <cstdlib>
#include <motet/detail/core/switchpoint.hpp>
#include <string>
#include <utility>

#include "base/alarm.hpp"
#include "base/flag_guard.hpp"
#include "base/printable.hpp"
#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A switch between each two calls that need not wait would cost more than many of them.
constexpr int most_calls_in_a_row = 16;

/// Many fibers are not in the cache when it is their turn: so this fetches a control block early,
/// and later, when the block has come, the stack to which it leads.
[[gnu::always_inline]] inline void fetch_ahead(const run_queue<control_block>& queue) noexcept {
  constexpr std::size_t stack_distance = 4;    // switches in which memory comes
  constexpr std::size_t lines_of_a_stack = 2;  // that a fiber touches soon after a switch
  static_assert(2 * stack_distance < run_queue<control_block>::few);
  __builtin_prefetch(queue.at(2 * stack_distance), 1);
  const control_block* const later = queue.at(stack_distance);
  if (later == nullptr) return;
  const auto* stack = static_cast<const std::byte*>(later->resume_context.stack_pointer);
  for (std::size_t line = 0; stack != nullptr && line < lines_of_a_stack; ++line)
    __builtin_prefetch(stack + 64 * line, 1);
}

/// Of a fiber that only gives way, the record is not in the cache: so it is not looked at.
bool awaits_fiber(const control_block& fiber) noexcept {
  return fiber.state.load(std::memory_order_relaxed) == fiber_state::waiting &&
         fiber.wait->for_fiber();
}

}  // namespace

/// Among many fibers, one that is awaited does not wait for the others, nor does the one that
/// awaits it when it has ended: otherwise a tree of fibers would be alive breadth first, and each
/// level out of the cache. Fibers that are awaited in the order of the queue gain nothing by that,
/// nor does one that is elsewhere, whose block another thread reads.
void thread_core::prefer_awaited() noexcept {
  if (!queue_.in_ring() || !awaits_fiber(*runner_)) return;
  control_block& target = **runner_->wait->target;
  if (target.state.load(std::memory_order_relaxed) != fiber_state::runnable) return;
  if (!queue_.is_far_back(target) || journey_of_any(target) != nullptr) return;
  if (queue_.move_to_front(target)) target.owes_turn = true;
}

void thread_core::return_turn() noexcept {
  if (queue_.in_ring()) queue_.move_to_front(queue_.back_of_ring());
}

/// The next fiber of a switch that is recorded was settled when it was recorded.
control_block& thread_core::pop_awaited() noexcept {
  if (!recorded_) prefer_awaited();
  fetch_ahead(queue_);
  return queue_.pop_from_ring();
}

/// Whatever is rare is a tail call: with one more register saved, each fiber would need another
/// line of its stack.
control_block& thread_core::pop_of_many() noexcept {
  if (awaits_fiber(*runner_)) [[unlikely]]
    return pop_awaited();
  fetch_ahead(queue_);
  return queue_.pop_from_ring();
}

void thread_core::tick() noexcept {
  queue_.arrange();
  static_cast<thread_state*>(this)->tick_now();
}

void thread_core::look_between_calls() noexcept {
  calls_until_look_ = calls_between_looks;
  const bool no_switch = until_look_then_ == until_look_;
  const flag_guard look(static_cast<thread_state*>(this)->looks_aside);
  tick();
  if (no_switch) until_look_then_ = until_look_;
}

/// The running fiber is the first in line again. The kernel is asked before it is taken, so that
/// what a poll makes runnable stands in line like everybody.
void thread_core::snooze_alone() noexcept {
  if (anything_pending()) static_cast<thread_state*>(this)->poll(false);
  take_first();
}

/// What a block says of exceptions counts while its fiber does not run, and is nothing otherwise.
void thread_core::exchange_exceptions(control_block& next, control_block& previous) noexcept {
  previous.chain = std::exchange(live_exceptions_->chain, std::exchange(next.chain, nullptr));
  previous.uncaught = std::exchange(live_exceptions_->uncaught, std::exchange(next.uncaught, 0U));
}

const call_site* thread_core::forbid_switches(const call_site* site) noexcept {
  const int count = until_look();
  const call_site* old_site = std::exchange(no_switch_, site);
  held_back_ = 0;
  count_down_from(count);
  return old_site;
}

namespace {

/// Of the fiber, or of the traveller that runs as it, whose block is another thread's.
std::string name_for_people(control_block& fiber) {
  const control_block& traveller = traveller_of(fiber);
  const std::string name = copied_name_of(traveller);
  return name.empty() ? std::to_string(traveller.id) : printable{name}.string();
}

std::string doing(const control_block& fiber) {
  if (fiber.state.load(std::memory_order_relaxed) == fiber_state::running) return "goes elsewhere";
  if (fiber.wait == nullptr) return "gives way";
  const wait_record& wait = *fiber.wait;
  const bool numbered = !wait.of_object() && wait.subject >= 0;
  return std::string("waits: ") + wait.description +
         (numbered ? " " + std::to_string(wait.subject) : "");
}

}  // namespace

void thread_core::check_may_switch() const noexcept {
  if (may_switch()) return;
  std::fprintf(stderr,
               "motet: fiber %s %s, within the no_switch_guard made at %s:%u: other fibers of this "
               "thread would run, and may lock its std::recursive_mutex, too\n",
               name_for_people(*runner_).c_str(), doing(*runner_).c_str(), no_switch_->file,
               no_switch_->line);
  std::abort();
}

bool thread_core::interrupted_at_once() noexcept {
  return hooks.interrupted_at_once(static_cast<thread_state&>(*this));
}

void thread_core::wait_for_work() noexcept {
  static_cast<thread_state*>(this)->wait_for_work_now();
}

void thread_core::tell_of_wake(const control_block& fiber) noexcept {
  if (recorded_) static_cast<thread_state*>(this)->recording->note_wake(fiber);
  have_loop_look();
}

void thread_core::sound_alarm() noexcept {
  set_off(alarm_);
  wakes_go_to(-1);
}

void thread_state::yield_after_budget() noexcept {
  if (!may_switch()) return;
  if (std::exchange(until_look_then_, until_look_) != until_look_) calls_in_a_row_ = 0;
  if (++calls_in_a_row_ < most_calls_in_a_row) return;
  calls_in_a_row_ = 0;
  if (queue_.empty()) {
    const flag_guard look(looks_aside);
    tick();
  }
  if (!queue_.empty()) snooze();
}

void thread_state::checkpoint() noexcept {
  const bool overdue = schedule.overdue();
  if (overdue || calls.submitted()) {
    const flag_guard look(looks_aside);
    poll(false);
  }
  if (overdue && !queue_.empty() && may_switch()) snooze();
}

void thread_state::park_until_over(wait_record& wait) noexcept {
  wait.reopen();
  wait.interruptible = false;
  wait.cancelling = true;
  ++wakers_[0];  // it will come, a transient fiber's too
  park(wait);
  --wakers_[0];
}

}}}  // namespace motet::MOTET_ABI::detail
