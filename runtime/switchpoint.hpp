// SPDX-License-Identifier: MIT
// The switchpoint: a fiber that cannot go on takes the next runnable one and transfers to it. There
// is nobody in between; when none is runnable, it runs the backend itself, on its own stack.
// Inline, so that a verb that waits is one function.
#pragma once

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

inline wake_reason thread_state::park(wait_record& wait) noexcept {
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

inline bool thread_state::resume(wait_record& wait, wake_reason reason) noexcept {
  if (!wait.claim(reason)) return false;
  make_runnable(*wait.fiber);
  return true;
}

inline void thread_state::make_runnable(control_block& fiber) noexcept {
  fiber.state.store(fiber_state::runnable, std::memory_order_relaxed);
  queue_.push_back(fiber);
  ++queue_length_;
}

inline void thread_state::snooze() noexcept {
  make_runnable(*running_);
  hand_on(false);
}

inline void thread_state::hand_on(bool last) noexcept {
  control_block& next = next_runnable();
  next.state.store(fiber_state::running, std::memory_order_relaxed);
  if (&next != running_) switch_to(next, last);
}

/// Polls before it takes, so that what a poll makes runnable stands in line like everybody.
inline control_block& thread_state::next_runnable() noexcept {
  if (--until_look_ == 0) {
    look_around();
  } else if (queue_.front() == running_ && anything_pending()) {
    poll(false);
  }
  while (queue_.empty()) rest();
  --queue_length_;
  control_block& next = *queue_.pop_front();
  if (queue_length_ > most_in_cache) prefetch();
  return next;
}

/// Many fibers are not in the cache when it is their turn: the next one's stack is fetched while
/// this one runs, and the block of the one behind it.
inline void thread_state::prefetch() noexcept {
  control_block* soon = queue_.front();
  const auto* stack = static_cast<const std::byte*>(soon->where.stack_pointer);
  for (std::size_t line = 0; line < 8; ++line) __builtin_prefetch(stack + 64 * line, 1);
  const auto* later = reinterpret_cast<const std::byte*>(queue_.next(*soon));
  for (std::size_t line = 0; line < 3; ++line) __builtin_prefetch(later + 64 * line, 1);
}

inline void thread_state::switch_to(control_block& next, bool last) noexcept {
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

inline void thread_state::bury() noexcept {
  if (ended_ != nullptr) [[unlikely]]
    bury_ended();
}

}  // namespace motet::inline MOTET_ABI::detail
