// SPDX-License-Identifier: MIT
// How an ended fiber leaves its stack. The next fiber begins on the same stack if it has not begun
// anywhere; otherwise the ended one gives the stack back before it leaves, or leaves that to
// others. Inline, because it is flattened into the first function of a fiber.
#pragma once

#include <utility>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline void release_ended(control_block& ended) noexcept {
  if (ended.references > 1) {
    --ended.references;
  } else {
    release_later(ended);
  }
}

/// ThreadSanitizer takes a stack and its history for one fiber. Where a body stood on the stack,
/// less than a whole one is left.
inline bool may_pass_stack_on(const stack_pool& stacks, const control_block& ended) noexcept {
  return !sanitizer::thread && body_is_beside(ended) && stacks.is_pooled(ended.runs_on);
}

/// A stack may be given back early, because no other fiber takes it before this one has left it.
/// But a sanitizer must be notified after that, and a stack in use must not be unmapped or sealed.
inline bool may_give_back_own_stack(const stack_pool& stacks, const control_block& ended) noexcept {
  return !sanitizer::any && stacks.is_pooled(ended.runs_on);
}

/// A signal handler may read the running fiber, but not a freed one: so the next fiber becomes the
/// running one before this one is freed.
inline control_block& thread_core::hand_on_for_good() noexcept {
  control_block& ended = *running_;
  control_block& next = next_runnable();
  give_back_retired_stack();
  stack_pool& stacks = static_cast<thread_state*>(this)->store.stacks;
  const bool fresh = next.where.stack_pointer == nullptr;
  if (fresh && may_pass_stack_on(stacks, ended)) {
    next.runs_on = std::exchange(ended.runs_on, stack());
    next.where = ended.where;
    install(next, ended);
    stacks.take_back_promise();
    release_ended(ended);
    return next;
  }
  if (fresh) give_stack(next);
  install(next, ended);
  const retired_stack left{ended.runs_on, ended.where.watched};
  const bool gives_back = may_give_back_own_stack(stacks, ended);
  release_ended(ended);
  if (gives_back) {
    stacks.give_back(left.one);
  } else {
    retired_stack_ = left;
  }
  leave_context(next.where);
}

}}}  // namespace motet::MOTET_ABI::detail
