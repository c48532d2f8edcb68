// SPDX-License-Identifier: MIT
// Calls with a file offset, and calls on file names. They belong to motet/io/io.hpp, and its
// rules apply. All of them may wait for the disk, but none blocks the thread: the kernel works
// asynchronously, or a plain thread makes the call. An interruption ends a call that has not
// begun; a call that has begun is awaited, and returns as usual.
//
// A relative path starts at a directory given by a descriptor, or, for AT_FDCWD, at the
// working directory of the process. A path ends with a NUL, and must stay valid during the
// call.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace io {

/// As read() and write(), but at byte `offset` of a file, whose position does not change.
/// So several fibers can use one file at the same time.
/// Returns: bytes read or written, in [0, buffer.size()].
/// Switchpoint.
/// Throws: std::system_error: ESPIPE for a pipe or a socket, EINVAL for a negative offset.
/// Source: pread(2).
std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset);
std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset,
                  std::error_code& error) noexcept;
std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset);
std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset,
                   std::error_code& error) noexcept;

/// The same for several buffers; at most IOV_MAX of them.
/// Switchpoint.
/// Throws: as pread(); std::invalid_argument for more than IOV_MAX buffers.
/// Source: preadv(2).
std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset);
std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset,
                   std::error_code& error) noexcept;
std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset);
std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset,
                    std::error_code& error) noexcept;

/// Waits until what has been written to a file is on the disk; fdatasync() omits metadata that is
/// not needed to read the data back, such as the modification time.
/// Switchpoint.
/// Source: fsync(2).
void fsync(int fd);
void fsync(int fd, std::error_code& error) noexcept;
void fdatasync(int fd);
void fdatasync(int fd, std::error_code& error) noexcept;

/// Allocates disk space for a part of a file, or frees it, depending on `mode`.
/// Switchpoint.
/// Source: fallocate(2).
void fallocate(int fd, int mode, off_t offset, off_t size);
void fallocate(int fd, int mode, off_t offset, off_t size, std::error_code& error) noexcept;

/// Changes the size of a file, in bytes: truncates it, or extends it with zeros.
/// Switchpoint.
/// Source: ftruncate(2).
void ftruncate(int fd, off_t size);
void ftruncate(int fd, off_t size, std::error_code& error) noexcept;

/// Opens a file, and with O_CREAT creates it with the permissions in `mode` that the process's
/// umask allows. O_CLOEXEC is implied. Without O_NONBLOCK, opening a FIFO waits, on a plain thread,
/// until its other end is opened.
/// Returns: the descriptor, which the caller owns.
/// Switchpoint.
/// Source: openat(2).
int openat(int directory, const char* path, int flags, mode_t mode = 0);
int openat(int directory, const char* path, int flags, mode_t mode,
           std::error_code& error) noexcept;

/// Gets the status that `mask` requests. With AT_EMPTY_PATH in `flags` and an empty path, the file
/// is `directory` itself.
/// Switchpoint.
/// Source: statx(2).
void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status);
void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status,
           std::error_code& error) noexcept;

/// Renames a file within its file system. `flags` are those of renameat2(2).
/// Switchpoint.
/// Source: rename(2).
void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags = 0);
void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags, std::error_code& error) noexcept;

/// Removes a name; with AT_REMOVEDIR in `flags`, that of an empty directory.
/// Switchpoint.
/// Source: unlink(2).
void unlinkat(int directory, const char* path, int flags = 0);
void unlinkat(int directory, const char* path, int flags, std::error_code& error) noexcept;

/// Creates a directory with the permissions in `mode` that the process's umask allows.
/// Switchpoint.
/// Source: mkdir(2).
void mkdirat(int directory, const char* path, mode_t mode);
void mkdirat(int directory, const char* path, mode_t mode, std::error_code& error) noexcept;

}}}  // namespace motet::MOTET_ABI::io
