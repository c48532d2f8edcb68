// SPDX-License-Identifier: MIT
// How a socket comes to listen.
#pragma once

#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/serve_options.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: a socket bound to `where`, not listening yet, in non-blocking mode.
/// Throws: as listening_socket().
fd bound_socket(const net::endpoint& where, const net::listen_options& how);
/// Sockets that are bound with reuse_port from now on share the port of `bound`.
/// Throws: std::system_error.
void share_port(const fd& bound);
/// Throws: std::system_error that names `where`, to which the socket is bound.
void start_listening(const fd& bound, const net::endpoint& where, int backlog);

/// Returns: a socket that listens on `where`; in non-blocking mode.
/// Throws: std::system_error that names `where`; std::invalid_argument for a backlog below 1.
fd listening_socket(const net::endpoint& where, const net::listen_options& how);

}}}  // namespace motet::MOTET_ABI::detail
