// SPDX-License-Identifier: MIT
// A Unix socket that carries datagrams.
#pragma once

#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/datagram_socket.hpp>
#include <motet/net/endpoint.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Owns a Unix socket (SOCK_DGRAM). Move-only. Unlike with UDP, no datagram is lost: a send waits
/// while the receiver has no room. Any number of its thread's fibers may send and receive at the
/// same time.
class unix_datagram : public detail::datagram_socket {
 public:
  /// Receives at `address`. A path is created and removed as by unix_listener.
  /// Not a switchpoint.
  /// Throws: std::system_error that names `address`; std::invalid_argument for an endpoint of
  ///         another family.
  explicit unix_datagram(const endpoint& address);
  /// Returns: a socket without a name, which sends to `peer` and gets no answers.
  /// Not a switchpoint.
  /// Throws: std::system_error that names `peer`.
  static unix_datagram connect(const endpoint& peer);

  /// No socket; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  unix_datagram() noexcept = default;
  /// Takes ownership of a socket. Its path stays when it is closed.
  /// Not a switchpoint.
  explicit unix_datagram(fd socket) noexcept : datagram_socket(std::move(socket)) {}

  /// Ends this thread's calls on the socket with bad_file_descriptor, closes it, and removes the
  /// path that it created, unless that is another file by now.
  /// Switchpoint if there are such calls; nothing interrupts it.
  void close() noexcept {
    path_.remove();  // first, so that nobody finds it abandoned and recreates it
    datagram_socket::close();
  }
  /// Gives up ownership of the descriptor, and keeps the path. Pending calls continue.
  /// Not a switchpoint.
  fd release() noexcept {
    path_.forget();
    return datagram_socket::release();
  }

 private:
  detail::unix_socket_path path_;
};

}}}  // namespace motet::MOTET_ABI::net
