// SPDX-License-Identifier: MIT
// See net/udp_socket.hpp.
#include <sys/socket.h>

#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/net/udp_socket.hpp>

#include "io/net/socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

udp_socket::udp_socket(const endpoint& address)
    : datagram_socket(new_socket(of_kind(address, false).address()->sa_family, SOCK_DGRAM)) {
  detail::bind_to(native_handle(), address, "bind to");
}

udp_socket udp_socket::connect(const endpoint& peer) {
  udp_socket result(new_socket(of_kind(peer, false).address()->sa_family, SOCK_DGRAM));
  result.connect_to(peer);
  return result;
}

}}}  // namespace motet::MOTET_ABI::net
