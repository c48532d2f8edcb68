// SPDX-License-Identifier: MIT
// A part of a file, from the kernel's memory to a socket without a way through the program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <motet/clock.hpp>
#include <motet/detail/io/stream_direction.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Sends `size` bytes from `begin` on, as far as they are in memory: what is on the disk only would
/// have the thread wait.
/// Returns: how many bytes were sent; 0 also where the kernel cannot tell, or cannot send so.
/// Throws: std::system_error; timed_out if nothing is taken in `limit`;
///         a pending interruption.
/// Source: sendfile(2), cachestat(2).
std::uint64_t send_cached(const detail::stream_direction& to, int file, off_t begin,
                          std::uint64_t size, clock::duration limit);

}}}  // namespace motet::MOTET_ABI::http
