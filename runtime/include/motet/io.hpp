// SPDX-License-Identifier: MIT
// Blocking calls on raw descriptors that block only the calling fiber. They work on descriptors in
// either mode and never change it. Concurrent calls on one descriptor have no order among them.
//
// Every one of these is a switchpoint, also when it need not wait. An interruption that comes while
// it waits ends it, and then nothing has happened: no byte was moved, no connection accepted. What
// had happened is returned as usual, and the interruption waits for the next switchpoint.
//
// Each throws std::system_error if the kernel refuses, and what is pending for this fiber. The
// forms with a std::error_code are noexcept and leave an interruption pending: they set it to
// std::errc::operation_canceled.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <motet/detail/words/abi.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace io {

/// Reads at most `buffer.size()` bytes at the current position. What a file does not have at hand
/// is fetched by another thread; an interruption then waits for that. So is all of a file that was
/// opened with O_DIRECT.
/// Returns: bytes read, in [0, buffer.size()]; 0 at end of file.
/// Switchpoint.
/// Source: read(2).
std::size_t read(int fd, std::span<std::byte> buffer);
std::size_t read(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept;

/// Writes at most `buffer.size()` bytes, perhaps fewer. Nobody gets a SIGPIPE.
/// Returns: bytes written, in [0, buffer.size()].
/// Switchpoint.
/// Source: write(2).
std::size_t write(int fd, std::span<const std::byte> buffer);
std::size_t write(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept;

/// As read() and write(), for several buffers; at most IOV_MAX of them.
/// Switchpoint.
/// Source: readv(2).
std::size_t readv(int fd, std::span<const iovec> buffers);
std::size_t writev(int fd, std::span<const iovec> buffers);

/// As read() and write(), at `offset` bytes from the beginning of a file, whose position stays as
/// it is. Two fibers may use one file so at the same time. Returns: bytes read or written, in [0,
/// buffer.size()]. Switchpoint. Throws: std::system_error, ESPIPE, where there is no such place, as
/// in a pipe. Source: pread(2).
std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset);
std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset,
                  std::error_code& error) noexcept;
std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset);
std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset,
                   std::error_code& error) noexcept;

/// Waits until what has been written to a file is on the disk. An interruption waits for that.
/// Switchpoint.
/// Source: fsync(2).
void fsync(int fd);
void fsync(int fd, std::error_code& error) noexcept;

/// Receives at most `buffer.size()` bytes. With MSG_DONTWAIT it does not wait.
/// Returns: bytes received, in [0, buffer.size()]; 0 when the peer will send no more.
/// Switchpoint.
/// Throws: std::invalid_argument, or an error of that kind, for MSG_WAITALL: an interruption would
///         lose what has come.
/// Source: recv(2).
std::size_t recv(int fd, std::span<std::byte> buffer, int flags = 0);
std::size_t recv(int fd, std::span<std::byte> buffer, int flags, std::error_code& error) noexcept;

/// Receives a message, with what `message` has room for: data, the peer's address, control data.
/// Descriptors in it have the close-on-exec flag. What `message` refers to must last for the call.
/// Returns: bytes received; 0 when the peer will send no more. `message` says what came.
/// Switchpoint.
/// Throws: as recv().
/// Source: recvmsg(2), cmsg(3).
std::size_t recvmsg(int fd, msghdr& message, int flags = 0);
std::size_t recvmsg(int fd, msghdr& message, int flags, std::error_code& error) noexcept;

/// Sends at most `buffer.size()` bytes, perhaps fewer; MSG_NOSIGNAL is implied.
/// Returns: bytes sent, in [0, buffer.size()].
/// Switchpoint.
/// Source: send(2).
std::size_t send(int fd, std::span<const std::byte> buffer, int flags = 0);
std::size_t send(int fd, std::span<const std::byte> buffer, int flags,
                 std::error_code& error) noexcept;

/// Takes the next connection of a listening socket. `address` may be null; otherwise `*length` is
/// its room, and then its length. SOCK_CLOEXEC is implied.
/// Returns: the new descriptor, the caller's.
/// Switchpoint.
/// Source: accept4(2).
int accept(int fd, sockaddr* address = nullptr, socklen_t* length = nullptr);
int accept(int fd, sockaddr* address, socklen_t* length, std::error_code& error) noexcept;

/// Connects a socket. A Unix socket waits until the backlog of its listener has room, also in
/// non-blocking mode. An interruption takes back what has begun, so that the socket can connect
/// again: of TCP the local port is then another one, unless it was bound. Not every protocol can do
/// that; where the next connect fails (EALREADY), the socket is only good for being closed.
/// Switchpoint.
/// Source: connect(2), AF_UNSPEC.
void connect(int fd, const sockaddr* address, socklen_t length);
void connect(int fd, const sockaddr* address, socklen_t length, std::error_code& error) noexcept;

/// Waits until the descriptor is ready for one of `events`: POLLIN, POLLOUT, POLLPRI, POLLRDHUP.
/// Returns: those of `events` that it is ready for, and POLLERR, POLLHUP if they are so.
/// Switchpoint.
/// Throws: std::invalid_argument for an empty or unknown mask; bad_file_descriptor in the place of
///         POLLNVAL.
/// Source: poll(2).
short wait_fd(int fd, short events);

/// Ends a direction of a connection: SHUT_RD, SHUT_WR or SHUT_RDWR.
/// Not a switchpoint.
/// Source: shutdown(2).
void shutdown(int fd, int how);

/// Ends this thread's operations on the descriptor, whose fibers get bad_file_descriptor, waits for
/// that, and closes it. Operations of other threads must have ended before.
/// Switchpoint; nothing interrupts it.
/// Source: close(2).
void close(int fd);

}}}  // namespace motet::MOTET_ABI::io
