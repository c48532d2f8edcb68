// SPDX-License-Identifier: MIT
// A socket that takes TCP connections, and the server that is a loop around it.
#pragma once

#include <exception>
#include <functional>
#include <motet/backend.hpp>
#include <motet/fd.hpp>
#include <motet/group.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/tcp_stream.hpp>
#include <system_error>
#include <utility>

namespace motet::net {

class tcp_listener {
 public:
  /// Listens on `where`; SO_REUSEADDR is set. Port 0 lets the kernel choose: see local_endpoint().
  /// `backlog` is how many connections may wait to be accepted; the kernel has a limit of its own.
  /// Not a switchpoint.
  /// Throws: std::system_error; std::invalid_argument for a backlog below 1.
  explicit tcp_listener(const endpoint& where, int backlog = SOMAXCONN);

  /// Takes the next connection.
  /// Switchpoint.
  /// Throws: std::system_error; what is pending for this fiber.
  tcp_stream accept();
  tcp_stream accept(std::error_code& error) noexcept;

  /// Takes connections for ever and calls `handler(tcp_stream)` on a fiber for each; returns only
  /// by an exception, once those fibers have been cancelled and are over, so `handler` may borrow
  /// locals. A handler that throws ends its own connection: `on_error` gets the exception; by
  /// default the first of each kind is reported through options.on_notice and the others are
  /// counted. When descriptors or memory run out it waits, from 1 ms up to 1 s, and tries again.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; std::system_error if the listener is unusable.
  template <typename Handler>
  void serve(Handler&& handler, std::function<void(std::exception_ptr)> on_error = {}) {
    serve_each([&handler](tcp_stream peer) { handler(std::move(peer)); }, std::move(on_error));
  }

  /// Not a switchpoint.
  /// Throws: std::system_error.
  endpoint local_endpoint() const;

  /// Ends what accepts on it, with bad_file_descriptor, and closes it.
  /// Switchpoint; nothing interrupts it.
  void close() noexcept { socket_.close(); }

  /// Returns: the descriptor, which stays the listener's; -1 once closed.
  /// Not a switchpoint.
  int native_handle() const noexcept { return socket_.get(); }

 private:
  using handler_function = std::function<void(tcp_stream)>;
  using error_function = std::function<void(std::exception_ptr)>;

  operation acceptance() const noexcept;
  [[noreturn]] void serve_each(const handler_function& handler, error_function on_error);

  fd socket_;
};

}  // namespace motet::net
