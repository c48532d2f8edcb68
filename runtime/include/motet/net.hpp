// SPDX-License-Identifier: MIT
// Sockets: endpoints, and streams and listeners of TCP and of Unix sockets.
#pragma once

#include <motet/net/endpoint.hpp>
#include <motet/net/listen_fds.hpp>
#include <motet/net/serve_options.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/net/tcp_stream.hpp>
#include <motet/net/udp_socket.hpp>
#include <motet/net/unix_datagram.hpp>
#include <motet/net/unix_listener.hpp>
#include <motet/net/unix_stream.hpp>
