// SPDX-License-Identifier: MIT
// See net/unix_listener.hpp.
#include <motet/net/unix_listener.hpp>

#include "io/io.hpp"
#include "io/net/server.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_listener.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

unix_listener::unix_listener(const endpoint& address, listen_options options)
    : socket_listener(detail::listening_socket(of_kind(address, true), options)), path_(address) {}

unix_stream unix_listener::accept() {
  return unix_stream(accept_fd());
}

unix_stream unix_listener::accept(std::error_code& error) noexcept {
  const std::size_t number = detail::quietly(error, [&] { return accept_now(); });
  return error ? unix_stream() : stream_on<unix_stream>(static_cast<int>(number), error);
}

std::size_t unix_listener::serve_each(const serve_options& options,
                                      const std::function<void(unix_stream)>& handler,
                                      call_site site) {
  return server<unix_stream>(options, handler, site)
      .run([this](peer_address& peer) { return accept_now(peer.get(), &peer.length); },
           [this](peer_address& peer) { return accept_ready(peer.get(), &peer.length); },
           [this] { close(); });
}

void unix_listener::close() {
  path_.remove();  // first, so that it is not found abandoned, and made anew, meanwhile
  socket_listener::close();
}

fd unix_listener::release() {
  fd socket = socket_listener::release();
  path_.forget();
  return socket;
}

}}}  // namespace motet::MOTET_ABI::net
