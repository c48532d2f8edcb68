// SPDX-License-Identifier: MIT
// The system call that another thread of this process is blocked in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct blocked_call {
  enum class state : std::uint8_t { in_call, running, unknown } is = state::unknown;
  std::string text;                  // in a call: as "read(fd 7)"
  std::uintptr_t stack_pointer = 0;  // of the thread
  std::uintptr_t instruction = 0;    // behind the call
};

/// Returns: `unknown` if the kernel does not report it; `running` if it is about to leave a call.
/// Throws: std::bad_alloc. Source: proc(5), /proc/pid/syscall; Linux, fs/proc/base.c.
blocked_call blocked_call_of(pid_t thread);

}}}  // namespace motet::MOTET_ABI::detail
