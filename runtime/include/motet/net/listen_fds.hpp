// SPDX-License-Identifier: MIT
// Sockets that a supervisor has opened for the program.
#pragma once

#include <motet/io/fd.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Adopts the sockets that systemd, or another supervisor with the same protocol, has opened for
/// this process, in its order: construct a tcp_listener, unix_listener or udp_socket from each.
/// They become close-on-exec, so child processes do not inherit them. A server that drains leaves
/// waiting connections to its successor, unless the socket is in non-blocking mode.
/// Returns: the descriptors; none if the environment has none for this process, and on every later
///          call.
/// Not a switchpoint.
/// Throws: std::system_error if one of them is not open (EBADF) or not a socket (ENOTSOCK);
///         std::runtime_error if the environment's value is not a number. Any thread; do not change
///         the environment meanwhile.
/// Source: sd_listen_fds(3).
std::vector<fd> listen_fds();

}}}  // namespace motet::MOTET_ABI::net
