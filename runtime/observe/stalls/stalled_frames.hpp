// SPDX-License-Identifier: MIT
// Where another thread of this process stands. A thread that computes is asked by a signal; one
// that is blocked in a system call is not, for the signal would end the call early.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <span>

#include "observe/stalls/blocked_call.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// From now on threads answer. SIGURG is the signal, which does nothing by default; a handler that
/// the program had set before is called for every other SIGURG.
/// Throws: std::system_error.
void answer_for_frames();

/// Returns: the return addresses of the motet thread, the innermost first; empty if it has not
///          answered soon, or stands where frames cannot be followed. In code without unwind tables
///          those of blocked_frames().
std::span<void*> computing_frames(pid_t thread, std::span<void*> buffer) noexcept;

/// Returns: the words on the thread's stack, from its stack pointer up to
///          `top` or a bound, that look like return addresses: behind a call,
///          in a loaded object. Some may be remnants of calls that have
///          returned.
std::span<void*> blocked_frames(const blocked_call& call, const void* top,
                                std::span<void*> buffer) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
