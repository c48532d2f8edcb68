// SPDX-License-Identifier: MIT
// See net/unix_datagram.hpp.
#include <sys/socket.h>

#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/net/unix_datagram.hpp>

#include "io/net/socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

unix_datagram::unix_datagram(const endpoint& address)
    : datagram_socket(new_socket(AF_UNIX, SOCK_DGRAM)) {
  detail::bind_to(native_handle(), of_kind(address, true), "bind to");
  path_ = detail::unix_socket_path(address);
}

unix_datagram unix_datagram::connect(const endpoint& peer) {
  unix_datagram result(new_socket(AF_UNIX, SOCK_DGRAM));
  result.connect_to(of_kind(peer, true));
  return result;
}

}}}  // namespace motet::MOTET_ABI::net
