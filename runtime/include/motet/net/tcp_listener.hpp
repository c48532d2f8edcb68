// SPDX-License-Identifier: MIT
// A socket that accepts TCP connections, and serve(), the loop that makes it a server.
#pragma once

#include <sys/socket.h>

#include <exception>
#include <functional>
#include <motet/detail/io/socket_listener.hpp>
#include <motet/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/tcp_stream.hpp>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

class thread_pool;

}}  // namespace motet::MOTET_ABI

namespace motet { inline namespace MOTET_ABI { namespace net {

class tcp_listener : public detail::socket_listener {
 public:
  /// Listens on `where`; SO_REUSEADDR is set. Port 0 lets the kernel choose: see local_endpoint().
  /// `backlog` is how many connections may wait to be accepted; the kernel has a limit of its own.
  /// Not a switchpoint.
  /// Throws: std::system_error; std::invalid_argument for a backlog below 1.
  explicit tcp_listener(const endpoint& where, int backlog = SOMAXCONN);
  /// Takes over a socket that listens, for example one that another program has opened.
  /// Not a switchpoint.
  explicit tcp_listener(fd listening) : socket_listener(std::move(listening)) {}
  tcp_listener(tcp_listener&&) noexcept = default;
  tcp_listener& operator=(tcp_listener&&) noexcept = default;
  /// As close(). Ends the process if a fiber of another thread is in accept().
  /// Switchpoint; nothing interrupts it.
  ~tcp_listener() = default;

  /// Takes the next connection. Fibers that accept at the same time are served in turn.
  /// Switchpoint.
  /// Throws: std::system_error; what is pending for this fiber; std::logic_error while a fiber of
  ///         another thread accepts.
  tcp_stream accept();
  tcp_stream accept(std::error_code& error) noexcept;

  /// Takes connections for ever and calls `handler(tcp_stream)` on a fiber for each. It ends only
  /// by an exception, once the handlers' fibers have been cancelled and are over, so `handler` may
  /// borrow locals. A handler that throws ends its own connection, and `on_error` is called with
  /// the exception; by default the first of each kind is reported through options.on_notice and
  /// the others are counted. What `on_error` throws goes to options.on_unhandled. When descriptors
  /// or memory run out, serve() waits, from 1 ms up to 1 s, and tries again.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; std::system_error if the listener is unusable;
  ///         std::logic_error as accept().
  template <typename Handler>
  void serve(Handler&& handler, std::function<void(std::exception_ptr)> on_error = {}) {
    serve_each([&handler](tcp_stream peer) { handler(std::move(peer)); }, std::move(on_error));
  }

  /// The same on every thread of `pool`, each with its own listener on `where`; the kernel shares
  /// the connections out among the listeners. So `handler` and `on_error` are called by several
  /// threads at a time; they may borrow from the caller, which waits until all are over. If one
  /// thread cannot go on, all stop.
  /// Switchpoint.
  /// Throws: as serve(); std::system_error if `where` cannot be listened on; std::invalid_argument
  ///         for port 0; executor_stopped if the pool was stopped before, fiber_cancelled if it is
  ///         stopped meanwhile.
  /// Source: socket(7), SO_REUSEPORT.
  template <typename Handler>
  static void serve(thread_pool& pool, const endpoint& where, Handler&& handler,
                    std::function<void(std::exception_ptr)> on_error = {}) {
    serve_on_each(
        pool, where, [&handler](tcp_stream peer) { handler(std::move(peer)); },
        std::move(on_error));
  }

 private:
  using handler_function = std::function<void(tcp_stream)>;
  using error_function = std::function<void(std::exception_ptr)>;

  [[noreturn]] void serve_each(const handler_function& handler, error_function on_error);
  static void serve_on_each(thread_pool& pool, const endpoint& where,
                            const handler_function& handler, const error_function& on_error);
  struct shared_port {};
  tcp_listener(const endpoint& where, int backlog, shared_port);
};

}}}  // namespace motet::MOTET_ABI::net
