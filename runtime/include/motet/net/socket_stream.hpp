// SPDX-License-Identifier: MIT
// What connections of all kinds have in common: bytes in two directions, in order.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/io/fd.hpp>
#include <span>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// One fiber may read while another writes. Several fibers that read, or that write, take turns in
/// the order in which they called, and write_all() keeps its turn until all is written.
class socket_stream {
 public:
  /// Reads at most `buffer.size()` bytes.
  /// Returns: bytes read, in [0, buffer.size()]; 0 at the end of the peer's data.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption, and then nothing was read; std::logic_error
  ///         if another thread's fiber is reading.
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
  void write_all(std::string_view text);
  void write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept;
  /// Writes all of several buffers, in as few calls as the kernel allows.
  /// Switchpoint.
  /// Throws: as write_all().
  void writev_all(std::span<const iovec> buffers);

  /// Ends one direction or both: SHUT_RD, SHUT_WR or SHUT_RDWR. May be called while other fibers
  /// read and write.
  /// Not a switchpoint. Any thread.
  /// Throws: std::system_error; it is not_connected, too, if the peer has reset the connection.
  void shutdown(int direction);
  void shutdown(int direction, std::error_code& error) noexcept;

  /// Ends every read and write with bad_file_descriptor, and closes the connection.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void close();

  /// Ends every read and write as close() does, but leaves the connection open.
  /// Returns: the descriptor, which the caller now owns; empty if the stream was closed. Its number
  ///          differs from native_handle() if other threads have used the stream.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread is reading or writing; std::system_error
  ///         if the process has no free descriptor.
  fd release();

  /// Returns: the descriptor, which the stream still owns; -1 if it is closed.
  /// Not a switchpoint.
  int native_handle() const noexcept;

  /// For reader, writer and copy().
  /// Not a switchpoint.
  stream_direction input_direction() noexcept;
  stream_direction output_direction() noexcept;

 protected:
  struct state;

  socket_stream() noexcept;
  explicit socket_stream(fd socket);
  socket_stream(socket_stream&&) noexcept;
  socket_stream& operator=(socket_stream&&) noexcept;
  ~socket_stream();

  /// Sends a message after all earlier writes, or receives the next one.
  /// Returns: bytes sent or received.
  /// Throws: as write() and read().
  std::size_t send_message(msghdr& message);
  std::size_t receive_message(msghdr& message);

 private:
  template <bool Writes>
  struct half;

  owned<state> state_;
};

}}}  // namespace motet::MOTET_ABI::detail
