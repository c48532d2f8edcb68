// SPDX-License-Identifier: MIT
// The switchpoint: a fiber that cannot go on takes the next runnable one and transfers to it. There
// is nobody in between; when none is runnable, it runs the backend itself, on its own stack.
#include <cerrno>

#include "thread_state.hpp"

namespace motet::detail {

namespace {

/// A switch between each two calls that need not wait would cost more than many of them.
constexpr int most_calls_in_a_row = 16;

}  // namespace

wake_reason thread_state::park(wait_record& wait) noexcept {
  control_block& fiber = *running_;
  wait.fiber = &fiber;
  wait.interruptible = wait.interruptible && !shielded();
  if (wait.interruptible && fiber.interrupts != 0) {
    wait.claim(wake_reason::interrupted);
    return wait.ended;
  }
  wait.since = reading_;
  fiber.wait = &wait;
  fiber.state.store(fiber_state::waiting, std::memory_order_relaxed);
  hand_on(false);
  fiber.wait = nullptr;
  return wait.ended;
}

bool thread_state::resume(wait_record& wait, wake_reason reason) noexcept {
  if (!wait.claim(reason)) return false;
  make_runnable(*wait.fiber);
  return true;
}

void thread_state::make_runnable(control_block& fiber) noexcept {
  fiber.state.store(fiber_state::runnable, std::memory_order_relaxed);
  queue_.push_back(fiber);
  ++queue_length_;
}

void thread_state::snooze() noexcept {
  make_runnable(*running_);
  hand_on(false);
}

void thread_state::give_way() noexcept {
  if (++calls_in_a_row_ < most_calls_in_a_row) return;
  calls_in_a_row_ = 0;
  if (queue_.empty()) look_around();
  if (!queue_.empty()) snooze();
}

void thread_state::checkpoint() noexcept {
  const bool overdue = poll_overdue();
  if (overdue || submitted_since_poll_) poll(false);
  if (overdue && !queue_.empty()) snooze();
}

void thread_state::hand_on(bool last) noexcept {
  control_block& next = next_runnable();
  next.state.store(fiber_state::running, std::memory_order_relaxed);
  if (&next != running_) switch_to(next, last);
}

/// Polls before it takes, so that what a poll makes runnable stands in line like everybody.
control_block& thread_state::next_runnable() noexcept {
  if (--until_look_ == 0) {
    look_around();
  } else if (queue_.front() == running_ && anything_pending()) {
    poll(false);
  }
  while (queue_.empty()) rest();
  --queue_length_;
  return *queue_.pop_front();
}

void thread_state::switch_to(control_block& next, bool last) noexcept {
  control_block& left = *running_;
  left.exceptions = *live_exceptions_;
  left.saved_errno = *live_errno_;
  *live_exceptions_ = next.exceptions;
  *live_errno_ = next.saved_errno;
  running_ = &next;
  calls_in_a_row_ = 0;
  switch_context(left.where, next.where, last);
  bury();
}

/// Nobody can free the stack he stands on: the successor does.
void thread_state::bury() noexcept {
  if (ended_ == nullptr) return;
  control_block& buried = *ended_;
  ended_ = nullptr;
  sanitizer::forget(buried.where.watched, buried.runs_on.bottom, buried.runs_on.size());
  stacks_.give_back(buried.runs_on);
  release_later(buried);
}

}  // namespace motet::detail
