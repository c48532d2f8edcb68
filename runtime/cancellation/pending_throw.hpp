// SPDX-License-Identifier: MIT
// What a switchpoint throws, if anything: which of several interruptions of a fiber has the word.
// On the fiber's home thread.
#pragma once

#include <motet/detail/core/scope.hpp>

#include "core/effective_interruption.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

effective_interruption effective_interruption_of(const control_block& fiber) noexcept;

/// Notes why a fiber is to throw, and ends its wait unless something forbids it.
/// Returns: whether that ended a wait of the fiber.
bool interrupt_fiber(control_block& fiber, interrupt bits) noexcept;

/// Returns: the number of the fiber's exceptions in flight plus the shields around it.
inline unsigned unwind_depth(const control_block& fiber, const thread_core& home) noexcept {
  const bool runs = &fiber == &home.running();
  return (runs ? home.exceptions().uncaught : fiber.uncaught) + fiber.shields;
}
/// Whether a wait of the running fiber must end before it begins.
bool interrupted_at_once(thread_state& home) noexcept;
bool in_shield(const control_block& fiber) noexcept;

/// Throws: the `cancelled` of the running fiber.
[[noreturn, gnu::noinline]] void throw_cancellation(thread_state& thread);

/// Ends the scopes for which another thread has asked.
void end_stopped_scopes(control_block& fiber) noexcept;
[[gnu::noinline]] void end_passed_limits_now(thread_state& thread) noexcept;
inline bool limits_may_have_passed(thread_state& thread) noexcept {
  return thread.running().scopes != nullptr && !thread.time.empty();
}
/// Ends what limits the running fiber and is due, though no poll has found it yet.
inline void end_passed_limits(thread_state& thread) noexcept {
  if (limits_may_have_passed(thread)) end_passed_limits_now(thread);
}

}}}  // namespace motet::MOTET_ABI::detail
