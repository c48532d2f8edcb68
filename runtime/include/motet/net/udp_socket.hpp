// SPDX-License-Identifier: MIT
// A UDP socket.
#pragma once

#include <motet/io/fd.hpp>
#include <motet/net/datagram_socket.hpp>
#include <motet/net/endpoint.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Owns a UDP socket. Move-only. Any number of its thread's fibers may send and receive at the same
/// time: a datagram is sent, and received, whole or not at all.
class udp_socket : public detail::datagram_socket {
 public:
  /// Receives at `address`. Port 0 lets the kernel choose: see local_endpoint().
  /// Not a switchpoint.
  /// Throws: std::system_error that names `address`;
  ///         std::invalid_argument for an endpoint of another family.
  explicit udp_socket(const endpoint& address);
  /// Returns: a socket that sends to `peer`, and receives only from it.
  /// Not a switchpoint.
  /// Throws: std::system_error that names `peer`.
  static udp_socket connect(const endpoint& peer);

  /// No socket; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  udp_socket() noexcept = default;
  /// Takes ownership of a socket.
  /// Not a switchpoint.
  explicit udp_socket(fd socket) noexcept : datagram_socket(std::move(socket)) {}

  /// Ends this thread's calls on the socket with bad_file_descriptor, and closes it.
  /// Switchpoint if there are such calls; nothing interrupts it.
  void close() noexcept { datagram_socket::close(); }
  /// Gives up ownership of the descriptor. Pending calls continue.
  /// Not a switchpoint.
  fd release() noexcept { return datagram_socket::release(); }
};

}}}  // namespace motet::MOTET_ABI::net
