// SPDX-License-Identifier: MIT
// How a server takes connections, and how it ends.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <motet/base/clock.hpp>
#include <stop_token>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace net {

struct serve_options {
  /// When a stop is requested, on any thread, the server drains: it accepts the connections already
  /// queued, as far as the limit allows, closes the listener, and lets the handlers finish. A
  /// handler that waits for its next request should let the token end that wait, and nothing else:
  /// see docs/servers.md.
  std::stop_token drain = {};
  /// How long a graceful shutdown waits for the handlers; those still running then are cancelled.
  clock::duration grace = std::chrono::seconds(10);
  /// How many connections may be open at a time; others wait to be accepted. 0: no limit.
  std::size_t limit = 0;
  /// Called, in its fiber, with what a handler has thrown. By default the first failure of each
  /// kind is reported through options.on_notice, and the others are counted. What this throws goes
  /// to options.on_unhandled.
  std::function<void(std::exception_ptr)> on_error = {};
  /// The fiber of a connection has this name, followed by the peer's if it has one.
  std::string name = "connection";
  /// A server on several threads may use a port on which another program, or another server in this
  /// program, listens already, and shares its connections.
  bool share_port = false;
};

struct listen_options {
  /// The maximum number of connections waiting for accept, at least 1; the kernel has a limit, too.
  int backlog = SOMAXCONN;
  /// Several sockets of one user may listen on the port, and share its connections (SO_REUSEPORT).
  bool reuse_port = false;
  /// The port can be taken even while connections of an earlier program are still closing
  /// (SO_REUSEADDR).
  bool reuse_address = true;
  /// An IPv6 socket takes no IPv4 connections (IPV6_V6ONLY).
  bool v6_only = false;
};

}}}  // namespace motet::MOTET_ABI::net
