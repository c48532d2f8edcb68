// SPDX-License-Identifier: MIT
// See net/tcp_listener.hpp.
#include <cerrno>
#include <motet/detail/life/group.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/thread.hpp>
#include <motet/thread_pool.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "io/io.hpp"
#include "io/net/serve_loop.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_listener.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

tcp_listener::tcp_listener(const endpoint& where, int backlog)
    : socket_listener(detail::listening_socket(of_kind(where, false), backlog, false)) {}

tcp_listener::tcp_listener(const endpoint& where, int backlog, shared_port)
    : socket_listener(detail::listening_socket(of_kind(where, false), backlog, true)) {}

tcp_stream tcp_listener::accept() {
  return tcp_stream(accept_fd());
}

tcp_stream tcp_listener::accept(std::error_code& error) noexcept {
  const std::size_t number = detail::quietly(error, [&] { return accept_now(); });
  return error ? tcp_stream() : stream_on<tcp_stream>(static_cast<int>(number), error);
}

void tcp_listener::serve_each(const handler_function& handler, error_function on_error) {
  serve_loop<tcp_stream>([&] { return accept_now(); }, handler, std::move(on_error));
}

/// All listeners listen before the first one accepts: if one of them cannot listen, no connection
/// that another has accepted is lost.
void tcp_listener::serve_on_each(thread_pool& pool, const endpoint& where,
                                 const handler_function& handler, const error_function& on_error) {
  if (where.port() == 0) throw std::invalid_argument("threads that share a port need its number");
  std::vector<tcp_listener> listeners;
  for (std::size_t i = 0; i < pool.workers(); ++i) {
    listeners.push_back(tcp_listener(where, SOMAXCONN, shared_port{}));
  }
  group shards;
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    shards.spin([&, i] {
      pool.worker(i).call([&] {
        tcp_listener listener = std::move(listeners[i]);
        listener.serve(handler, on_error);
      });
    });
  }
  shards.await_all();
}

}}}  // namespace motet::MOTET_ABI::net
