// SPDX-License-Identifier: MIT
// Blocking calls on raw descriptors that block only the calling fiber. They work on descriptors in
// blocking and in non-blocking mode, and never change the mode. Concurrent calls on one descriptor
// are not ordered.
//
// Each call is a switchpoint, even if it need not wait. An interruption while a call waits ends the
// call, and then nothing has happened: no byte was transferred, no connection accepted. If bytes
// had been transferred, or a connection accepted, the call returns as usual, and the interruption
// is thrown at the next switchpoint.
//
// Each call throws std::system_error if the kernel reports an error, and a pending interruption.
// The forms with a std::error_code are noexcept and leave an interruption pending: they set the
// code to std::errc::operation_canceled.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <motet/io/file_verbs.hpp>    // pread() and further calls on files and names
#include <motet/io/splice_verbs.hpp>  // splice(), tee() and waitid()
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace io {

/// Reads at most `buffer.size()` bytes at the current position. Data of a file that is not in
/// memory is read by another thread, and an interruption then waits for that thread. A file that
/// was opened with O_DIRECT is always read by another thread.
/// Returns: bytes read, in [0, buffer.size()]; 0 at end of file.
/// Switchpoint.
/// Source: read(2).
std::size_t read(int fd, std::span<std::byte> buffer);
std::size_t read(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept;

/// Writes at most `buffer.size()` bytes, perhaps fewer. Never raises SIGPIPE.
/// Returns: bytes written, in [0, buffer.size()].
/// Switchpoint.
/// Source: write(2).
std::size_t write(int fd, std::span<const std::byte> buffer);
std::size_t write(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept;

/// As read() and write(), for several buffers, at most IOV_MAX.
/// Switchpoint.
/// Source: readv(2).
std::size_t readv(int fd, std::span<const iovec> buffers);
std::size_t writev(int fd, std::span<const iovec> buffers);

/// Reads until all of `buffer` is filled, in as many calls as needed.
/// Switchpoint.
/// Throws: unexpected_eof if the end comes first; as read(), but part of the buffer may have been
///         filled then.
void read_exactly(int fd, std::span<std::byte> buffer);
/// The same.
/// Returns: bytes read; fewer than buffer.size() at the end, or with `error` set.
/// Switchpoint.
std::size_t read_exactly(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept;

/// Writes until all of `buffer` is written, in as many calls as needed.
/// Switchpoint.
/// Throws: as write(), but part of the buffer may have been written then.
void write_all(int fd, std::span<const std::byte> buffer);
/// The same.
/// Returns: bytes written; fewer than buffer.size() only with `error` set.
/// Switchpoint.
std::size_t write_all(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept;

/// Receives at most `buffer.size()` bytes. With MSG_DONTWAIT it does not wait.
/// Returns: bytes received, in [0, buffer.size()]; 0 at the end of the peer's data.
/// Switchpoint.
/// Throws: std::invalid_argument (std::errc::invalid_argument in the form with a std::error_code)
///         for MSG_WAITALL, because an interruption would lose received bytes.
/// Source: recv(2).
std::size_t recv(int fd, std::span<std::byte> buffer, int flags = 0);
std::size_t recv(int fd, std::span<std::byte> buffer, int flags, std::error_code& error) noexcept;

/// Receives a message into the buffers of `message`: data, the peer's address, control data.
/// Received descriptors have the close-on-exec flag. The buffers must stay valid during the call.
/// Returns: bytes received; 0 at the end of the peer's data. `message` describes what arrived.
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

/// Sends a message: data, an address, control data, such as descriptors; MSG_NOSIGNAL is implied.
/// What `message` refers to must last for the call.
/// Returns: bytes sent. Control data goes with the first byte.
/// Switchpoint.
/// Source: sendmsg(2), cmsg(3).
std::size_t sendmsg(int fd, const msghdr& message, int flags = 0);
std::size_t sendmsg(int fd, const msghdr& message, int flags, std::error_code& error) noexcept;

/// Takes the next connection of a listening socket. `address` may be null; otherwise `*length` is
/// the room for the peer's address, and afterwards the length of that address. SOCK_CLOEXEC is
/// implied.
/// Returns: the new descriptor, which the caller owns.
/// Switchpoint.
/// Source: accept4(2).
int accept(int fd, sockaddr* address = nullptr, socklen_t* length = nullptr);
int accept(int fd, sockaddr* address, socklen_t* length, std::error_code& error) noexcept;

/// Connects a socket. A Unix socket waits until the backlog of its listener has room, even in
/// non-blocking mode. An interruption takes the attempt back, so that the socket can connect again;
/// a TCP socket then has another local port, unless it was bound. Not every protocol can take an
/// attempt back: if the next connect fails with EALREADY, the socket can only be closed.
/// Switchpoint.
/// Source: connect(2), AF_UNSPEC.
void connect(int fd, const sockaddr* address, socklen_t length);
void connect(int fd, const sockaddr* address, socklen_t length, std::error_code& error) noexcept;

/// Waits until the descriptor is ready for one of `events`: POLLIN, POLLOUT, POLLPRI, POLLRDHUP.
/// Returns: those of `events` that the descriptor is ready for, and POLLERR, POLLHUP where poll(2)
///          reports them.
/// Switchpoint.
/// Throws: std::invalid_argument for an empty or unknown mask; bad_file_descriptor where poll(2)
///         reports POLLNVAL.
/// Source: poll(2).
short wait_fd(int fd, short events);

/// Ends a direction of a connection: SHUT_RD, SHUT_WR or SHUT_RDWR.
/// Not a switchpoint.
/// Source: shutdown(2).
void shutdown(int fd, int direction);

/// Ends this thread's operations on the descriptor, waits until their fibers have got
/// bad_file_descriptor, and closes the descriptor. Operations of other threads must have ended
/// before.
/// Switchpoint; nothing interrupts it.
/// Source: close(2).
void close(int fd);

}}}  // namespace motet::MOTET_ABI::io
