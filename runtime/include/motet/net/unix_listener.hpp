// SPDX-License-Identifier: MIT
// A Unix socket that accepts connections.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <motet/base/call_site.hpp>
#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/serve_options.hpp>
#include <motet/net/socket_listener.hpp>
#include <motet/net/unix_stream.hpp>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace net {

class unix_listener : public detail::socket_listener {
 public:
  /// Listens on `address`; of the options only the backlog applies. A path is created, with the
  /// permissions that the process's umask allows, and removed by close(). The path of a terminated
  /// program is replaced; that of a running one is not.
  /// Not a switchpoint.
  /// Throws: std::system_error that names `address`; std::invalid_argument for a backlog below 1,
  ///         or an endpoint of another family.
  explicit unix_listener(const endpoint& address, listen_options options = {});
  /// Takes over a socket that listens, for example one that another program has opened. Its path
  /// stays when it is closed.
  /// Not a switchpoint.
  explicit unix_listener(fd socket) : socket_listener(std::move(socket)) {}
  unix_listener(unix_listener&&) noexcept = default;
  unix_listener& operator=(unix_listener&&) noexcept = default;
  /// As close(). Ends the process if a fiber of another thread is in accept().
  /// Switchpoint; nothing interrupts it.
  ~unix_listener() = default;

  /// Takes the next connection. Fibers that accept at the same time are served in turn.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption; std::logic_error while a fiber of
  ///         another thread accepts.
  unix_stream accept();
  unix_stream accept(std::error_code& error) noexcept;

  /// As tcp_listener::serve(), with unix_streams.
  /// Switchpoint.
  /// Throws: as tcp_listener::serve().
  template <typename Handler>
  std::size_t serve(const serve_options& options, Handler&& handler,
                    call_site site = call_site::here()) {
    return serve_each(options, [&handler](unix_stream peer) { handler(std::move(peer)); }, site);
  }
  template <typename Handler>
    requires std::invocable<Handler&, unix_stream>
  void serve(Handler&& handler, std::function<void(std::exception_ptr)> on_error = {},
             call_site site = call_site::here()) {
    serve({.on_error = std::move(on_error)}, std::forward<Handler>(handler), site);
  }

  /// Ends every accept() with bad_file_descriptor, closes the socket, and removes the path that the
  /// listener created, unless that is another file by now.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error while a fiber of another thread accepts.
  void close();
  /// As close(), but the socket and the path stay.
  /// Returns: the descriptor, which the caller now owns; empty if the listener was closed.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error while a fiber of another thread accepts.
  fd release();

 private:
  std::size_t serve_each(const serve_options& options,
                         const std::function<void(unix_stream)>& handler, call_site site);

  detail::unix_socket_path path_;
};

}}}  // namespace motet::MOTET_ABI::net
