// SPDX-License-Identifier: MIT
// How an ended fiber leaves its stack. The next fiber begins on the same stack if it has not begun
// anywhere; otherwise the ended one gives the stack back before it leaves, or leaves that to
// others. Inline, because it is flattened into the first function of a fiber.
#pragma once

#include <utility>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline void release_ended(control_block& dead_fiber) noexcept {
  if (dead_fiber.references > 1) {
    --dead_fiber.references;
  } else {
    release_later(dead_fiber);
  }
}

/// ThreadSanitizer takes a stack and its history for one fiber. Where a body stood on the stack,
/// less than a whole one is left.
inline bool may_pass_stack_on(const stack_pool& stacks, const control_block& dead_fiber) noexcept {
  return !sanitizer::thread && body_is_beside(dead_fiber) && stacks.is_pooled(dead_fiber.runs_on);
}

/// A stack may be given back early, because no other fiber takes it before this one has left it.
/// But a sanitizer must be notified after that, and a stack in use must not be unmapped or sealed.
inline bool may_give_back_own_stack(const stack_pool& stacks,
                                    const control_block& dead_fiber) noexcept {
  return !sanitizer::enabled && stacks.is_pooled(dead_fiber.runs_on);
}

/// A signal handler may read the running fiber, but not a freed one: so the next fiber becomes the
/// running one before this one is freed.
inline control_block& thread_core::hand_on_for_good() noexcept {
  control_block& dead_fiber = *runner_;
  control_block& next = next_runnable();
  give_back_retired_stack();
  stack_pool& stacks = static_cast<thread_state*>(this)->store.stacks;
  const bool fresh = next.resume_context.stack_pointer == nullptr;
  if (fresh && may_pass_stack_on(stacks, dead_fiber)) {
    next.runs_on = std::exchange(dead_fiber.runs_on, stack());
    next.resume_context = dead_fiber.resume_context;
    install(next, dead_fiber);
    stacks.release_promise();
    release_ended(dead_fiber);
    return next;
  }
  if (fresh) give_stack(next);
  install(next, dead_fiber);
  const retired_stack old_stack{dead_fiber.runs_on, dead_fiber.resume_context.shadow};
  const bool gives_back = may_give_back_own_stack(stacks, dead_fiber);
  release_ended(dead_fiber);
  if (gives_back) {
    stacks.give_back_pooled(old_stack.region);
  } else {
    retired_stack_ = old_stack;
  }
  load_context(next.resume_context);
}

}}}  // namespace motet::MOTET_ABI::detail
