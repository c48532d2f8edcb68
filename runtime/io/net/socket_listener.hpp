// SPDX-License-Identifier: MIT
// How a socket comes to listen.
#pragma once

#include <motet/fd.hpp>
#include <motet/net/endpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: a socket that listens on `where`; in non-blocking mode.
/// Throws: std::system_error that names `where`; std::invalid_argument for a backlog below 1.
fd listening_socket(const net::endpoint& where, int backlog, bool shares_port);

}}}  // namespace motet::MOTET_ABI::detail
