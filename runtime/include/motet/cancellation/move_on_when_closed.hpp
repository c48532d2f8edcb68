// SPDX-License-Identifier: MIT
// Work for a peer, which ends when the peer hangs up.
#pragma once

#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/group.hpp>
#include <stop_token>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

/// Spins a fiber in `monitors` that requests `stop` when the peer of the socket hangs up.
/// Throws: std::system_error if the number is no descriptor.
void monitor_peer(group& monitors, int socket, const std::stop_source& stop);

}  // namespace detail

/// Calls `f`, and ends it when the peer of `stream`, a connected socket, hangs up, as
/// move_on_after() does when the time is up. A peer has hung up when it has closed the connection,
/// shut its direction down, or reset it; what it sent before that can still be read, and does
/// not end `f`. So a peer that shuts its direction down and waits for an answer counts as gone: do
/// not use this where the protocol allows that. `f` may read, write and close the stream.
/// Returns: what `f` returned, in an optional, or nothing if it was ended; for a void `f`, whether
///          it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::system_error, before `f` is called, if the stream is closed;
///         std::bad_alloc before `f` is called.
/// Source: poll(2), POLLRDHUP.
template <typename Stream, typename F>
auto move_on_when_closed(const Stream& stream, F&& f) {
  const std::stop_source stop;
  group monitors;
  detail::monitor_peer(monitors, stream.native_handle(), stop);
  return move_on_when_stopped(stop.get_token(), std::forward<F>(f));
}

}}  // namespace motet::MOTET_ABI
