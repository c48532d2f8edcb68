// SPDX-License-Identifier: MIT
// A connection between two programs on one machine, which can carry descriptors.
#pragma once

#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/socket_stream.hpp>
#include <optional>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Owns a connection of a Unix socket (SOCK_STREAM). Move-only. One fiber may read while another
/// writes. Several fibers that read, or that write, take turns in the order in which they called,
/// and write_all() keeps its turn until all is written.
class unix_stream : public detail::socket_stream {
 public:
  /// Connects to `peer`; waits while the backlog of its listener is full.
  /// Switchpoint.
  /// Throws: std::system_error that names `peer`; a pending interruption.
  static unix_stream connect(const endpoint& peer);
  static unix_stream connect(const endpoint& peer, std::error_code& error) noexcept;

  /// A stream without a connection; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  unix_stream() noexcept = default;
  /// Takes over a connected socket.
  /// Not a switchpoint.
  explicit unix_stream(fd socket) : socket_stream(std::move(socket)) {}
  unix_stream(unix_stream&&) noexcept = default;
  unix_stream& operator=(unix_stream&&) noexcept = default;
  /// As close(). Ends the process if a fiber of another thread is reading or writing.
  /// Switchpoint; nothing interrupts it.
  ~unix_stream() = default;

  /// Sends a copy of the descriptor, with one byte, after everything written earlier. The
  /// descriptor must stay open until the call is over.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption, and then nothing was sent.
  /// Source: unix(7), SCM_RIGHTS.
  void send_fd(int descriptor);
  /// Reads one byte, and the descriptor that was sent with it, which gets the close-on-exec flag.
  /// Only this call receives descriptors: read() reads the byte, and the kernel closes the
  /// descriptor. If several were sent with one byte, all but the first are closed.
  /// Returns: the descriptor; std::nullopt at the end of the peer's data.
  /// Switchpoint.
  /// Throws: std::system_error, no_message if the byte came without a descriptor,
  ///         too_many_files_open if this process has no free descriptor, and then the sent one is
  ///         lost; a pending interruption, and then nothing was read.
  std::optional<fd> receive_fd();

  /// Returns: the names of the Unix sockets; most clients have none.
  /// Not a switchpoint.
  /// Throws: std::system_error.
  endpoint local_endpoint() const;
  endpoint peer_endpoint() const;
};

/// Returns: two ends of a new connection.
/// Not a switchpoint.
/// Throws: std::system_error.
/// Source: socketpair(2).
std::pair<unix_stream, unix_stream> stream_pair();

}}}  // namespace motet::MOTET_ABI::net
