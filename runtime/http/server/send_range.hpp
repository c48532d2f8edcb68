// SPDX-License-Identifier: MIT
// A part of a file, from the kernel's memory to a socket without a way through the program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/io/stream_direction.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Sends `size` bytes from `begin` on, up to the first that is not in the page cache: reading from
/// the disk would block the thread.
/// Returns: the number of bytes sent; 0 also if the kernel cannot tell, or does not support it.
/// Throws: std::system_error; timed_out if the client accepts nothing for `limit`; a pending
///         interruption.
/// Source: sendfile(2), cachestat(2).
std::uint64_t send_cached(const detail::stream_direction& target, int file, off_t begin,
                          std::uint64_t size, clock::duration limit);

}}}  // namespace motet::MOTET_ABI::http
