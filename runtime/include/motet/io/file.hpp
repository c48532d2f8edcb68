// SPDX-License-Identifier: MIT
// A file that is open.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <motet/base/errors.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/io/fd.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Owns an open file. Move-only. Calls without an offset start at the file's position, and
/// advance it; calls with an offset do not, so that several fibers can use one file concurrently.
/// No call blocks the thread on disk I/O. The rules of motet/io/io.hpp for interruptions apply; a
/// call that transfers a whole buffer does so in parts, and can be interrupted between two of
/// them.
class file {
 public:
  /// Opens the file, and with O_CREAT in `flags` creates it with the permissions in `mode` that the
  /// process's umask allows. O_CLOEXEC is implied.
  /// Switchpoint.
  /// Throws: std::system_error, which names the path; std::invalid_argument for a path that holds a
  ///         NUL; a pending interruption.
  /// Source: open(2).
  static file open(std::string_view path, int flags = O_RDONLY, mode_t mode = 0666);
  static file open(std::string_view path, int flags, mode_t mode, std::error_code& error) noexcept;

  /// No file; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  file() noexcept = default;
  /// Takes over an open file.
  /// Not a switchpoint.
  explicit file(fd descriptor) noexcept;

  /// Reads at most `buffer.size()` bytes.
  /// Returns: bytes read, in [0, buffer.size()]; 0 at the end of the file.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption, and then nothing was read.
  std::size_t read(std::span<std::byte> buffer);
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;
  /// Fills all of `buffer`.
  /// Switchpoint.
  /// Throws: unexpected_eof if the file ends first; as read(), but part of the buffer may have been
  ///         filled then, and the position moved.
  void read_exactly(std::span<std::byte> buffer);
  /// The same.
  /// Returns: bytes read; fewer than buffer.size() at the end of the file, or with `error` set.
  /// Switchpoint.
  std::size_t read_exactly(std::span<std::byte> buffer, std::error_code& error) noexcept;

  /// Writes at most `buffer.size()` bytes, perhaps fewer.
  /// Returns: bytes written.
  /// Switchpoint.
  /// Throws: as read().
  std::size_t write(std::span<const std::byte> buffer);
  std::size_t write(std::span<const std::byte> buffer, std::error_code& error) noexcept;
  /// Writes the whole buffer.
  /// Switchpoint.
  /// Throws: as read(); a part may have been written then.
  void write_all(std::span<const std::byte> buffer);
  void write_all(std::string_view text);
  /// The same.
  /// Returns: bytes written; fewer than buffer.size() only with `error` set.
  /// Switchpoint.
  std::size_t write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// As read() and write(), `offset` bytes from the beginning of the file. For a file on a disk,
  /// calls by many fibers enter the kernel together; calls of io::pread() and io::pwrite() do not.
  /// Switchpoint.
  std::size_t read_at(std::span<std::byte> buffer, off_t offset);
  std::size_t read_at(std::span<std::byte> buffer, off_t offset, std::error_code& error) noexcept;
  std::size_t write_at(std::span<const std::byte> buffer, off_t offset);
  std::size_t write_at(std::span<const std::byte> buffer, off_t offset,
                       std::error_code& error) noexcept;

  /// Appends the whole buffer at the end of the file; other fibers, threads and programs may
  /// append concurrently. It is written in one piece, unless it is larger than 2 GiB or the disk
  /// becomes full; of a buffer of 4 KiB or more, a full disk accepts all or nothing, if the file
  /// system can reserve room.
  /// Returns: bytes appended, in the form with `error`; less than buffer.size() only on an error.
  /// Switchpoint.
  /// Throws: as write_all(); the message contains the number of bytes appended.
  /// Source: pwritev2(2), RWF_APPEND; fallocate(2), FALLOC_FL_KEEP_SIZE.
  void append(std::span<const std::byte> buffer);
  void append(std::string_view text);
  std::size_t append(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// Returns: the file's size in bytes.
  /// Switchpoint.
  /// Throws: as read().
  off_t size() const;
  /// Changes the size of the file: truncates it, or extends it with zeros.
  /// Switchpoint.
  /// Throws: as read().
  void resize(off_t size);
  /// Moves the position to `offset` bytes from the beginning, the position or the end of the file.
  /// Returns: the new position, from the beginning.
  /// Switchpoint if another fiber is reading or writing at the position: waits for it to finish.
  /// Throws: std::system_error; a pending interruption if it waits.
  /// Source: lseek(2).
  off_t seek(off_t offset, int whence = SEEK_SET);

  /// Waits until all written data is on the disk. sync_data() omits metadata that is
  /// not needed to read the data, such as the modification time.
  /// Switchpoint.
  /// Throws: std::system_error, even for much earlier writes;
  ///         a pending interruption.
  /// Source: fsync(2).
  void sync();
  void sync_data();

  /// For reader, writer and copy().
  /// Not a switchpoint.
  detail::stream_direction input_direction() noexcept;
  detail::stream_direction output_direction() noexcept;

  /// No effect, because a file has no peer. Present so that a file is a stream
  /// (motet/io/stream.hpp). Not a switchpoint.
  void shutdown(int) noexcept {}
  /// Ends this thread's calls on the file with bad_file_descriptor, and closes it.
  /// Switchpoint if there are such calls; nothing interrupts it.
  /// Throws: std::system_error, for example for a write that failed late; the file is closed then.
  void close();

  /// Returns: the descriptor, which the file still owns; -1 if it is closed.
  /// Not a switchpoint.
  int native_handle() const noexcept { return fd_.get(); }
  /// Gives up ownership of the descriptor. Pending calls continue.
  /// Not a switchpoint.
  fd release() noexcept { return std::move(fd_); }
  /// Not a switchpoint.
  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

 private:
  fd fd_;
  bool on_disk_ = false;
};

}}  // namespace motet::MOTET_ABI
