// SPDX-License-Identifier: MIT
// Calls that move bytes inside the kernel, or wait for a process; a part of motet/io/io.hpp, whose
// rules they follow.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace io {

/// Moves at most `size` bytes between two descriptors, at least one of them a pipe, and waits until
/// there are bytes and room for them. A plain thread moves bytes from or to a file; an interruption
/// then waits until it is done. `flags` are those of the kernel.
/// Returns: bytes moved; 0 at the end.
/// Switchpoint.
/// Throws: std::system_error: invalid_argument if neither is a pipe, or for a socket in blocking
///         mode, because the kernel would block the thread.
/// Source: splice(2).
std::size_t splice(int source, int destination, std::size_t size, unsigned flags = 0);
std::size_t splice(int source, int destination, std::size_t size, unsigned flags,
                   std::error_code& error) noexcept;

/// Copies at most `size` bytes from one pipe to another, and leaves them in the first.
/// Returns: bytes copied; 0 at the end.
/// Switchpoint.
/// Source: tee(2).
std::size_t tee(int source, int destination, std::size_t size);
std::size_t tee(int source, int destination, std::size_t size, std::error_code& error) noexcept;

/// Waits until the process of the pidfd, a child of this one, has ended, and reaps it unless
/// `options` contains WNOWAIT. `options` must contain WEXITED.
/// Switchpoint.
/// Source: waitid(2), P_PIDFD; pidfd_open(2).
siginfo_t waitid(int pidfd, int options = WEXITED);
siginfo_t waitid(int pidfd, int options, std::error_code& error) noexcept;

}}}  // namespace motet::MOTET_ABI::io
