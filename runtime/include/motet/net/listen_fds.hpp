// SPDX-License-Identifier: MIT
// Sockets that a supervisor has opened for the program.
#pragma once

#include <motet/fd.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Takes over the sockets that systemd, or another supervisor which follows the same protocol, has
/// opened for this process, in its order: a tcp_listener, unix_listener or udp_socket takes each.
/// They become close-on-exec, so the children of this process do not have them. A server that
/// drains leaves to the next one what waits on such a socket, unless it is in non-blocking mode.
/// Returns: the descriptors; none if the environment has none for this process, and at any further
///          call.
/// Not a switchpoint.
/// Throws: std::system_error if one of them is not open (EBADF) or no socket (ENOTSOCK);
///         std::runtime_error if the environment has something else than a number.
/// Threads: any; do not change the environment meanwhile.
/// Source: sd_listen_fds(3).
std::vector<fd> listen_fds();

}}}  // namespace motet::MOTET_ABI::net
