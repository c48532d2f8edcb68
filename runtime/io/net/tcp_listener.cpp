// SPDX-License-Identifier: MIT
// See net/tcp_listener.hpp.
#include <motet/detail/life/group.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/thread.hpp>
#include <motet/thread_pool.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "io/io.hpp"
#include "io/net/server.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_listener.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

tcp_listener::tcp_listener(const endpoint& where, listen_options how)
    : socket_listener(detail::listening_socket(of_kind(where, false), how)) {}

tcp_stream tcp_listener::accept() {
  return tcp_stream(accept_fd());
}

tcp_stream tcp_listener::accept(std::error_code& error) noexcept {
  const std::size_t number = detail::quietly(error, [&] { return accept_now(); });
  return error ? tcp_stream() : stream_on<tcp_stream>(static_cast<int>(number), error);
}

std::size_t tcp_listener::serve_each(const serve_options& how, const handler_function& handler) {
  const seats_of seats(how);
  return serve_each(how, handler, seats);
}

std::size_t tcp_listener::serve_each(const serve_options& how, const handler_function& handler,
                                     const seats_of& seats) {
  return server<tcp_stream>(how, handler, seats.get())
      .run([this] { await_one(); },
           [this](peer_address& peer) { return accept_now(peer.get(), &peer.length); },
           [this](peer_address& peer) { return accept_ready(peer.get(), &peer.length); },
           [this] { close(); });
}

namespace {

/// Returns: a socket for each thread, all on the port of `where`. None listens yet.
/// Throws: std::system_error.
std::vector<fd> sockets_on_one_port(std::size_t count, const endpoint& where, bool shared) {
  std::vector<fd> sockets;
  sockets.push_back(detail::bound_socket(where, {.reuse_port = shared}));
  detail::share_port(sockets.front());  // not before: the port is refused if it is another's
  while (sockets.size() < count) {
    sockets.push_back(detail::bound_socket(where, {.reuse_port = true}));
  }
  return sockets;
}

}  // namespace

/// All listeners listen before the first one accepts: if one of them cannot listen, no connection
/// that another has accepted is lost.
std::size_t tcp_listener::serve_on_each(thread_pool& pool, const endpoint& where,
                                        const serve_options& how, const handler_function& handler) {
  if (where.port() == 0) throw std::invalid_argument("threads that share a port need its number");
  const std::size_t count = pool.workers();
  std::vector<tcp_listener> listeners;
  for (fd& socket : sockets_on_one_port(count, of_kind(where, false), how.share_port)) {
    detail::start_listening(socket, where, SOMAXCONN);
    listeners.push_back(tcp_listener(std::move(socket)));
  }
  const seats_of seats(how);
  std::vector<std::size_t> cut(count);
  group shards;
  for (std::size_t i = 0; i < count; ++i) {
    shards.spin([&, i] {
      cut[i] = pool.worker(i).call([&] {
        tcp_listener listener = std::move(listeners[i]);
        return listener.serve_each(how, handler, seats);
      });
    });
  }
  shards.await_all();
  return std::accumulate(cut.begin(), cut.end(), std::size_t{0});
}

}}}  // namespace motet::MOTET_ABI::net
