// SPDX-License-Identifier: MIT
// See net/tcp_stream.hpp.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>
#include <motet/net/dns.hpp>
#include <motet/net/tcp_stream.hpp>
#include <string>

#include "base/faults.hpp"
#include "io/net/happy_eyeballs.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

bool no_delay(int fd, bool enable) noexcept {
  const int value = enable ? 1 : 0;
  return detail::faults::call("setsockopt", detail::sockets::setsockopt, fd, IPPROTO_TCP,
                              TCP_NODELAY, &value, socklen_t{sizeof value}) == 0;
}

}  // namespace

/// A connection that is gone already may refuse the option; the first read will fail then.
tcp_stream::tcp_stream(fd descriptor) : socket_stream(std::move(descriptor)) {
  no_delay(native_handle(), true);
}

tcp_stream tcp_stream::connect(const endpoint& peer) {
  fd socket = new_socket(peer.address()->sa_family, SOCK_STREAM);
  io::connect(socket.get(), peer.address(), peer.length());
  return tcp_stream(std::move(socket));
}

tcp_stream tcp_stream::connect(const endpoint& peer, std::error_code& error) noexcept {
  try {
    fd socket = new_socket(peer.address()->sa_family, SOCK_STREAM);
    io::connect(socket.get(), peer.address(), peer.length(), error);
    if (!error) return tcp_stream(std::move(socket));
  } catch (const std::system_error& failure) {
    error = failure.code();
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

tcp_stream tcp_stream::connect(std::string_view host, std::uint16_t port) {
  std::error_code error;
  endpoint last_peer;
  tcp_stream stream =
      connect_to_first(interleaved_families(dns::resolve(host, port)), error, last_peer);
  if (!error) return stream;
  throw std::system_error(error,
                          "connect to " + std::string(host) + " (" + last_peer.to_string() + ")");
}

endpoint tcp_stream::local_endpoint() const {
  return name_of(native_handle(), "getsockname", detail::sockets::getsockname);
}

endpoint tcp_stream::peer_endpoint() const {
  return name_of(native_handle(), "getpeername", detail::sockets::getpeername);
}

void tcp_stream::set_no_delay(bool enable) {
  if (!no_delay(native_handle(), enable)) {
    detail::throw_errno(errno, "setsockopt(TCP_NODELAY)", native_handle());
  }
}

}}}  // namespace motet::MOTET_ABI::net
