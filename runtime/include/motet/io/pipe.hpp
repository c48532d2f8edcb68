// SPDX-License-Identifier: MIT
// Bytes that are read from one descriptor and written to another.
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

namespace motet { inline namespace MOTET_ABI {

/// Owns a read end, a write end, or both: those of one pipe, or those that lead to
/// another process and back. Move-only. One fiber may read while another writes. Several fibers
/// that read, or that write, take turns in the order in which they called, and write_all() keeps
/// its turn until all is written. With `using namespace motet`, write motet::pipe, because unistd.h
/// has a function named pipe.
class pipe {
 public:
  /// Creates a pipe: bytes written to it can be read from it.
  /// Not a switchpoint.
  /// Throws: std::system_error.
  /// Source: pipe(7).
  static pipe open();

  /// A pipe without ends; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  pipe() noexcept;
  /// Takes ownership of a read end and a write end; either may be empty. They may be pipes,
  /// terminals, or any other byte streams.
  /// Not a switchpoint.
  pipe(fd read_end, fd write_end);
  pipe(pipe&&) noexcept;
  pipe& operator=(pipe&&) noexcept;
  /// As close(). Ends the process if a fiber of another thread is reading or writing.
  /// Switchpoint; nothing interrupts it.
  ~pipe();

  /// Reads at most `buffer.size()` bytes.
  /// Returns: bytes read, in [0, buffer.size()]; 0 when every write end is closed.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption, and then nothing was read;
  ///         std::logic_error if another thread's fiber is reading.
  std::size_t read(std::span<std::byte> buffer);
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;

  /// Writes at most `buffer.size()` bytes, perhaps fewer.
  /// Returns: bytes written.
  /// Switchpoint.
  /// Throws: as read(); broken_pipe, without SIGPIPE, when every read end is closed.
  std::size_t write(std::span<const std::byte> buffer);
  std::size_t write(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// Writes the whole buffer.
  /// Switchpoint.
  /// Throws: as write(); a part may have been written then.
  void write_all(std::span<const std::byte> buffer);
  void write_all(std::string_view text);
  void write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept;
  /// Writes all of several buffers, in as few calls as the kernel allows.
  /// Switchpoint.
  /// Throws: as write_all().
  void writev_all(std::span<const iovec> buffers);

  /// Closes the write end (SHUT_WR), the read end (SHUT_RD) or both (SHUT_RDWR), as
  /// close() does.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread uses that end; std::invalid_argument for
  ///         another number.
  void shutdown(int direction);
  /// Ends every read and write with bad_file_descriptor, and closes both ends.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void close();
  /// Ends every read (SHUT_RD), or every write (SHUT_WR), as close() does, but leaves that end
  /// open.
  /// Returns: its descriptor, which the caller now owns; empty if that end was closed.
  /// Switchpoint; nothing interrupts it.
  /// Throws: as shutdown().
  fd release(int direction);

  /// Returns: the descriptor of the read end (SHUT_RD) or the write end (SHUT_WR), which the pipe
  ///          still owns; -1 if that end is closed.
  /// Not a switchpoint.
  int native_handle(int direction) const noexcept;

  /// For reader, writer and copy().
  /// Not a switchpoint.
  detail::stream_direction input_direction() noexcept;
  detail::stream_direction output_direction() noexcept;

 private:
  struct end;
  template <bool Writes>
  struct half;
  void close(detail::owned<end>& closing);

  detail::owned<end> read_end_;
  detail::owned<end> write_end_;
};

}}  // namespace motet::MOTET_ABI
