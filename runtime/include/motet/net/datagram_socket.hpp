// SPDX-License-Identifier: MIT
// What sockets that carry datagrams have in common.
#pragma once

#include <cstddef>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <span>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// The result of receiving a datagram.
struct received_datagram {
  std::size_t size = 0;    // bytes, at most those of the buffer
  bool truncated = false;  // the buffer was too small, and the rest is lost
  endpoint from;           // endpoint() if the sender has no name
};

/// One buffer of receive_many(), and the result, in `got`.
struct datagram_slot {
  std::span<std::byte> buffer;
  received_datagram got = {};
};

/// A datagram for send_many().
struct outgoing_datagram {
  std::span<const std::byte> bytes;
  endpoint to;
};

}}}  // namespace motet::MOTET_ABI::net

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Any number of fibers may send and receive at the same time: a datagram is sent, and received,
/// whole or not at all.
class datagram_socket {
 public:
  /// Receives the next datagram.
  /// Returns: its size, which may be 0, and its source address.
  /// Switchpoint.
  /// Throws: std::system_error; on a connected socket, connection_refused if the peer's host
  ///         refused an earlier datagram; a pending interruption, and then no datagram was
  ///         received.
  net::received_datagram receive_from(std::span<std::byte> buffer);
  net::received_datagram receive_from(std::span<std::byte> buffer, std::error_code& error) noexcept;
  /// Waits for a datagram, and receives all that have arrived, but no more than there are slots,
  /// and no more than 64, in one or two system calls.
  /// Returns: the number of slots filled, from the first one on; at least 1.
  /// Switchpoint.
  /// Throws: as receive_from(); std::invalid_argument for no slots, or more than 1,024.
  /// Source: recvmmsg(2).
  std::size_t receive_many(std::span<net::datagram_slot> slots);

  /// Sends a datagram to `destination`; send() to the peer to which the socket is connected.
  /// Switchpoint.
  /// Throws: std::system_error, message_size for more bytes than a datagram can have;
  /// a pending interruption, and then nothing was sent.
  void send_to(std::span<const std::byte> bytes, const net::endpoint& destination);
  void send_to(std::span<const std::byte> bytes, const net::endpoint& destination,
               std::error_code& error) noexcept;
  void send(std::span<const std::byte> bytes);
  void send(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  /// Waits until the socket is writable, and sends as many of the datagrams, in order, as the
  /// kernel accepts, up to 64, in one or two system calls.
  /// Returns: the number of datagrams sent; at least 1.
  /// Switchpoint.
  /// Throws: as send_to(), for the first datagram; std::invalid_argument for no datagrams, or more
  ///         than 1,024.
  /// Source: sendmmsg(2).
  std::size_t send_many(std::span<const net::outgoing_datagram> datagrams);

  /// Not a switchpoint.
  /// Throws: std::system_error.
  net::endpoint local_endpoint() const;
  net::endpoint peer_endpoint() const;

  /// Returns: the descriptor, which the socket still owns; -1 if it is closed.
  /// Not a switchpoint.
  int native_handle() const noexcept { return fd_.get(); }

 protected:
  datagram_socket() noexcept = default;
  explicit datagram_socket(fd socket) noexcept : fd_(std::move(socket)) {}
  datagram_socket(datagram_socket&&) noexcept = default;
  datagram_socket& operator=(datagram_socket&&) noexcept = default;
  ~datagram_socket() = default;

  /// Makes the socket send to `peer`, and receive only from it.
  /// Throws: std::system_error that names `peer`.
  /// Source: connect(2).
  void connect_to(const net::endpoint& peer);
  void close() noexcept { fd_.close(); }
  fd release() noexcept { return std::move(fd_); }

 private:
  fd fd_;
};

}}}  // namespace motet::MOTET_ABI::detail
