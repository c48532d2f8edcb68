// SPDX-License-Identifier: MIT
// Libraries that retry a call which fails because of a pending interruption. They are reported, and
// in the end get an error after which they give up.
#pragma once

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Called when a call of the running fiber fails with `error`, because an interruption is pending.
/// Returns: `error`; EBADF if thousands of calls in a row have failed.
int count_refusal(thread_state& home, int error) noexcept;
/// Called when a call of the running fiber may wait.
void forget_refusals() noexcept;

}}}  // namespace motet::MOTET_ABI::detail
