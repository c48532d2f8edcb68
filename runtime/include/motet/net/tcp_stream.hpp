// SPDX-License-Identifier: MIT
// A TCP connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <span>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Owns a connection. Move-only. One fiber may read while another writes. Several fibers that read,
/// or that write, take turns in the order in which they called, and write_all() keeps its turn
/// until all is written.
class tcp_stream {
 public:
  /// Connects to `peer`; TCP_NODELAY is set.
  /// Switchpoint.
  /// Throws: std::system_error; what is pending for this fiber.
  static tcp_stream connect(const endpoint& peer);
  static tcp_stream connect(const endpoint& peer, std::error_code& error) noexcept;
  /// Looks up `host` as dns::resolve() does, and tries its addresses one after another until one
  /// can be reached. A time limit round the call is for the look-up and all the tries.
  /// Switchpoint.
  /// Throws: as dns::resolve(); std::system_error with the error of the last address.
  static tcp_stream connect(std::string_view host, std::uint16_t port);

  /// A stream without a connection; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  tcp_stream() noexcept;
  /// Takes over a connected socket and sets TCP_NODELAY where it can.
  /// Not a switchpoint.
  explicit tcp_stream(fd connected);
  tcp_stream(tcp_stream&&) noexcept;
  tcp_stream& operator=(tcp_stream&&) noexcept;
  /// As close(). Ends the process if a fiber of another thread is reading or writing.
  /// Switchpoint; nothing interrupts it.
  ~tcp_stream();

  /// Reads at most `buffer.size()` bytes.
  /// Returns: bytes read, in [0, buffer.size()]; 0 when the peer will send no more.
  /// Switchpoint.
  /// Throws: std::system_error; what is pending for this fiber, and then nothing was read;
  ///         std::logic_error if another thread's fiber is reading.
  std::size_t read(std::span<std::byte> buffer);
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;

  /// Writes at most `buffer.size()` bytes, perhaps fewer.
  /// Returns: bytes written.
  /// Switchpoint.
  /// Throws: as read().
  std::size_t write(std::span<const std::byte> buffer);
  std::size_t write(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// Writes all of `buffer`.
  /// Switchpoint.
  /// Throws: as read(); part of `buffer` may have been written then.
  void write_all(std::span<const std::byte> buffer);
  void write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// Ends one direction or both: SHUT_RD, SHUT_WR or SHUT_RDWR. May be called while other fibers
  /// read and write.
  /// Not a switchpoint. Any thread.
  /// Throws: std::system_error; not_connected also if the peer has reset the connection.
  void shutdown(int how);
  void shutdown(int how, std::error_code& error) noexcept;

  /// Ends every read and write with bad_file_descriptor, and closes the connection.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void close();

  /// Not a switchpoint.
  /// Throws: std::system_error.
  endpoint local_endpoint() const;
  endpoint peer_endpoint() const;
  void set_no_delay(bool on);

  /// Returns: the descriptor, which the stream still owns; -1 if there is none.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}}}  // namespace motet::MOTET_ABI::net
