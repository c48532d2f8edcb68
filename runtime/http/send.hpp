// SPDX-License-Identifier: MIT
// Bytes to a peer that may take none for too long.
#pragma once

#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Sets `rest` to the bytes not sent, even if it throws.
/// Throws: std::system_error; timed_out if the peer accepts nothing for `limit`; a pending
///         interruption.
inline void send_rest(const detail::stream_direction& target, std::span<const std::byte>& rest,
                      clock::duration limit) {
  const bool in_time = move_on_after(limit, [&](deadline& pause) {
    std::error_code error;
    detail::direction_lock lock(target, error);
    while (!error && !rest.empty()) {
      rest = rest.subspan(lock.write(rest, error));
      if (!rest.empty()) pause.reset(limit);
    }
    if (error) detail::throw_stream_error(error, "write");
  });
  if (!in_time) throw timed_out(call_site::here());
}

inline void send_all(const detail::stream_direction& target, std::span<const std::byte> bytes,
                     clock::duration limit) {
  send_rest(target, bytes, limit);
}

}}}  // namespace motet::MOTET_ABI::http
