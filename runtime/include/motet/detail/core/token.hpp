// SPDX-License-Identifier: MIT
// The wait of suspend(): for a token, which may have been given already.
#pragma once

#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

[[noreturn]] void refuse_token();

/// Throws: a pending interruption, if an exception was raised: then it replaces the token.
inline void let_exception_displace_token(thread_core& thread, control_block& fiber) {
  if ((fiber.interrupts & interrupt_raised) == 0 || !thread.must_throw()) return;
  cold(fiber).token.reset();
  thread.throw_pending();
}

[[gnu::always_inline]] inline value_slot suspend_for_token(bool conditional) {
  thread_core& thread = here_core();
  control_block& fiber = thread.running();
  thread.deliver_before_switch();
  const cold_part* part = cold_if_any(fiber);  // may be null even for a waiting fiber
  if (part != nullptr && part->token.filled()) {
    thread.snooze();
    let_exception_displace_token(present_core(), fiber);
  } else {
    wait_record wait("suspend");
    wait.kind = fiber.is_main && !conditional ? wait_kind::idle_token : wait_kind::token;
    if (thread.park(wait) == wake_reason::interrupted) present_core().throw_pending();
  }
  return std::move(cold(fiber).token);
}

}}}  // namespace motet::MOTET_ABI::detail
