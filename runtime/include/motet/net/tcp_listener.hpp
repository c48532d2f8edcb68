// SPDX-License-Identifier: MIT
// A socket that accepts TCP connections, and serve(), the loop that makes it a server.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <motet/base/call_site.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/serve_options.hpp>
#include <motet/net/socket_listener.hpp>
#include <motet/net/tcp_stream.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

class thread_pool;

}}  // namespace motet::MOTET_ABI

namespace motet { inline namespace MOTET_ABI { namespace net {

class tcp_listener : public detail::socket_listener {
 public:
  /// Listens on `address`. Port 0 lets the kernel choose: see local_endpoint().
  /// Not a switchpoint.
  /// Throws: std::system_error that names `address`; std::invalid_argument for a backlog below 1.
  explicit tcp_listener(const endpoint& address, listen_options options = {});
  /// Takes over a socket that listens, for example one that another program has opened.
  /// Not a switchpoint.
  explicit tcp_listener(fd socket) : socket_listener(std::move(socket)) {}
  /// Resolves `host` as dns::resolve() does.
  /// Returns: a listener on each of its addresses; with port 0 the kernel chooses the port of the
  ///          first one, and the others use the same. IPv6 listeners accept no IPv4
  ///          connections. Addresses of other machines are skipped, unless there are no others.
  /// Switchpoint.
  /// Throws: as dns::resolve(); std::system_error that names the address; std::invalid_argument for
  ///         a backlog below 1.
  static std::vector<tcp_listener> on_all_addresses(std::string_view host, std::uint16_t port,
                                                    listen_options options = {});
  tcp_listener(tcp_listener&&) noexcept = default;
  tcp_listener& operator=(tcp_listener&&) noexcept = default;
  /// As close(). Ends the process if a fiber of another thread is in accept().
  /// Switchpoint; nothing interrupts it.
  ~tcp_listener() = default;

  /// Takes the next connection. Fibers that accept at the same time are served in turn.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption; std::logic_error while a fiber of
  ///         another thread accepts.
  tcp_stream accept();
  tcp_stream accept(std::error_code& error) noexcept;

  /// Accepts connections, and calls `handler(tcp_stream)` on a fiber for each, until it drains (see
  /// serve_options). A handler that throws ends its own connection. Before serve() throws, the
  /// fibers of the handlers are cancelled and have ended, so `handler` may borrow locals. When
  /// descriptors or memory run out, serve() reports that, waits, from 1 ms up to 1 s, and tries
  /// again. Dumps show the fibers as spun at `site`.
  /// Returns: how many handlers were cancelled because they took longer than the grace. The
  ///          listener is closed by then.
  /// Switchpoint.
  /// Throws: a pending interruption; std::system_error if the listener is unusable;
  ///         std::logic_error as accept().
  template <typename Handler>
  std::size_t serve(const serve_options& options, Handler&& handler,
                    call_site site = call_site::here()) {
    return serve_each(options, [&handler](tcp_stream peer) { handler(std::move(peer)); }, site);
  }
  /// The same until it is interrupted; `on_error` is that of serve_options.
  /// Switchpoint.
  /// Throws: as the other serve().
  template <typename Handler>
    requires std::invocable<Handler&, tcp_stream>
  void serve(Handler&& handler, std::function<void(std::exception_ptr)> on_error = {},
             call_site site = call_site::here()) {
    serve({.on_error = std::move(on_error)}, std::forward<Handler>(handler), site);
  }

  /// The same with the handlers on the threads of `pool`: this thread accepts, and each connection
  /// goes to the worker with the fewest connections and jobs. So several threads call `handler`
  /// concurrently; it may borrow from the caller, which waits until all have ended. A connection
  /// also uses a fiber on this thread.
  /// Returns: the number of handlers cancelled, on all threads.
  /// Switchpoint.
  /// Throws: as serve(); executor_stopped if the pool was stopped before, fiber_cancelled if it is
  ///         stopped meanwhile.
  template <typename Handler>
  std::size_t serve(thread_pool& pool, const serve_options& options, Handler&& handler,
                    call_site site = call_site::here()) {
    return serve_shared_out(
        pool, options, [&handler](tcp_stream peer) { handler(std::move(peer)); }, site);
  }
  /// The same, on a listener that this call creates for `address`.
  /// Switchpoint.
  /// Throws: as the other serve(); std::system_error if `address` cannot be bound, for example
  ///         because another socket that does not share the port listens there;
  ///         std::invalid_argument for port 0.
  /// Source: socket(7), SO_REUSEPORT.
  template <typename Handler>
  static std::size_t serve(thread_pool& pool, const endpoint& address, const serve_options& options,
                           Handler&& handler, call_site site = call_site::here()) {
    return serve_on_each(
        pool, address, options, [&handler](tcp_stream peer) { handler(std::move(peer)); }, site);
  }
  /// The same until it is interrupted; `on_error` is that of serve_options.
  /// Switchpoint.
  /// Throws: as the other serve().
  template <typename Handler>
    requires std::invocable<Handler&, tcp_stream>
  static void serve(thread_pool& pool, const endpoint& address, Handler&& handler,
                    std::function<void(std::exception_ptr)> on_error = {},
                    call_site site = call_site::here()) {
    serve(pool, address, {.on_error = std::move(on_error)}, std::forward<Handler>(handler), site);
  }

 private:
  using handler_function = std::function<void(tcp_stream)>;
  class shared_out;

  std::size_t serve_each(const serve_options& options, const handler_function& handler,
                         call_site site);
  std::size_t serve_shared_out(thread_pool& pool, const serve_options& options,
                               const handler_function& handler, call_site site);
  static std::size_t serve_on_each(thread_pool& pool, const endpoint& address,
                                   const serve_options& options, const handler_function& handler,
                                   call_site site);
};

}}}  // namespace motet::MOTET_ABI::net
