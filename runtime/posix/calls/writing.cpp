// SPDX-License-Identifier: MIT
// write(2) and send(2), and their relatives. As in the C library, a call on a blocking descriptor
// returns when all is written, or when something prevents the rest.
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/calls/unmoved.hpp"
#include "posix/functions.hpp"
#include "posix/retry.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using vector_span = std::span<const iovec>;

ssize_t write_and_block(int fd, vector_span vectors) noexcept {
  return libc.writev(fd, vectors.data(), static_cast<int>(vectors.size()));
}

/// What a write moves in one piece where RWF_NOWAIT is not known. A pipe that is ready, before
/// Linux 6.4, takes PIPE_BUF bytes without a wait; a terminal at least one. Returns: 0 for a device
/// that must get all at once. Source: pipe(7).
std::size_t piece_of(int fd) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) return PIPE_BUF;
  constexpr std::size_t piece_of_terminal = 256;
  return ::isatty(fd) == 1 ? piece_of_terminal : 0;
}

ssize_t write_if_ready(int fd, vector_span vectors, std::size_t size) noexcept {
  if (!is_ready(fd, POLLOUT)) return fail(EAGAIN);
  const std::size_t piece = piece_of(fd);
  if (piece == 0 || size <= piece) return write_and_block(fd, vectors);
  const iovec& first = vectors.front();
  return libc.write(fd, first.iov_base, std::min(first.iov_len, piece));
}

/// A socket knows MSG_DONTWAIT, whatever the kernel.
ssize_t send_now(int fd, vector_span vectors, int flags) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors.data());
  message.msg_iovlen = vectors.size();
  return sys::sendmsg(fd, &message, MSG_DONTWAIT | flags);
}

ssize_t write_first(int fd, vector_span vectors, std::size_t size) noexcept {
  const auto count = static_cast<int>(vectors.size());
  const ssize_t written = sys::pwritev2(fd, vectors.data(), count, -1, RWF_NOWAIT);
  if (written >= 0 || errno != EOPNOTSUPP) return written;
  const ssize_t sent = send_now(fd, vectors, 0);
  return sent < 0 && errno == ENOTSOCK ? write_if_ready(fd, vectors, size) : sent;
}

/// A socket raises no SIGPIPE if a part has been written; a pipe does.
ssize_t write_more(int fd, vector_span vectors, std::size_t size) noexcept {
  const ssize_t sent = send_now(fd, vectors, MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? write_first(fd, vectors, size) : sent;
}

/// Called before another attempt. When a connection ends while a call waits, the kernel reports the
/// error without a signal; after a partial transfer it leaves the error to the next call, except
/// that of a Unix socket. Sets errno.
bool has_ended(int fd, ssize_t total) noexcept {
  if (!has_hung_up(fd)) return false;
  const bool is_reported = total == 0 || socket_option(fd, SO_DOMAIN) == AF_UNIX;
  const int error = is_reported ? socket_option(fd, SO_ERROR) : 0;
  errno = error > 0 ? error : EPIPE;
  return total > 0 || error > 0;
}

/// Calls `move(part, is_first)` for what remains until all is moved; it fails with EAGAIN where it
/// would wait. `block(part, is_first)` is for descriptors that no fiber can wait for.
template <typename Move, typename Block>
ssize_t move_all(call_waits& waits, unmoved& rest, Move move, Block block) noexcept {
  ssize_t total = 0;
  do {
    const vector_span next = rest.next();
    const ssize_t size = retry(
        waits,
        [&]() -> ssize_t {
          const bool is_first = total == 0 && !waits.began();
          return !is_first && has_ended(waits.fd(), total) ? -1 : move(next, total == 0);
        },
        [&] { return block(next, total == 0); });
    if (size < 0) return total > 0 ? total : size;
    waits.progressed();
    total += size;
    rest.moved(static_cast<std::size_t>(size));
    if (size == 0) break;
  } while (!rest.empty());
  return total;
}

ssize_t write_all(thread_state& home, int fd, vector_span vectors) noexcept {
  unmoved rest(vectors);
  if (rest.empty() || is_file(fd)) return write_and_block(fd, vectors);
  call_waits waits(home, fd, POLLOUT, SO_SNDTIMEO, "write");
  return move_all(
      waits, rest,
      [&](vector_span part, bool is_first) {
        return is_first ? write_first(fd, part, rest.size()) : write_more(fd, part, rest.size());
      },
      [&](vector_span part, bool) { return write_and_block(fd, part); });
}

/// The control data of a message goes with its first bytes.
ssize_t send_all(thread_state& home, int fd, const msghdr& message, int flags) noexcept {
  call_waits waits(home, fd, POLLOUT, SO_SNDTIMEO, "send");
  unmoved rest({message.msg_iov, message.msg_iovlen});
  const auto part_of = [&](vector_span next, bool is_first) {
    msghdr part = message;
    if (is_first) return part;
    part.msg_iov = const_cast<iovec*>(next.data());
    part.msg_iovlen = next.size();
    part.msg_control = nullptr;
    part.msg_controllen = 0;
    return part;
  };
  const ssize_t total = move_all(
      waits, rest,
      [&](vector_span next, bool is_first) {
        const msghdr part = part_of(next, is_first);
        return sys::sendmsg(fd, &part, flags | MSG_DONTWAIT | (is_first ? 0 : MSG_NOSIGNAL));
      },
      [&](vector_span next, bool is_first) {
        const msghdr part = part_of(next, is_first);
        return libc.sendmsg(fd, &part, flags);
      });
  if (total > 0 && !waits.began()) let_others_run(home, fd);
  return total;
}

ssize_t send_buffer(thread_state& home, int fd, const void* buffer, std::size_t size, int flags,
                    const sockaddr* address, socklen_t length) noexcept {
  iovec vector{const_cast<void*>(buffer), size};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = length;
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  return send_all(home, fd, message, flags);
}

int send_messages(thread_state& home, int fd, mmsghdr* messages, unsigned count,
                  int flags) noexcept {
  unsigned sent = 0;
  for (; sent < std::min(count, unsigned{IOV_MAX}); ++sent) {
    const ssize_t size = send_all(home, fd, messages[sent].msg_hdr, flags);
    if (size < 0) break;
    messages[sent].msg_len = static_cast<unsigned>(size);
  }
  return sent > 0 || count == 0 ? static_cast<int>(sent) : -1;
}

/// Whether a send is to be the C library's: one that opens a connection first, or whose buffers the
/// kernel reports on one by one.
constexpr bool is_plain_send(int flags) noexcept {
  return (flags & (MSG_DONTWAIT | MSG_FASTOPEN | MSG_ZEROCOPY)) != 0;
}

[[gnu::noinline]] ssize_t write_in_fiber(int fd, const void* buffer, std::size_t size) noexcept {
  const fiber_call call;
  if (!call || size == 0) return libc.write(fd, buffer, size);
  const iovec vector{const_cast<void*>(buffer), size};
  return call.result(write_all(call.home(), fd, {&vector, 1}));
}

[[gnu::noinline]] ssize_t writev_in_fiber(int fd, const iovec* vectors, int count) noexcept {
  const fiber_call call;
  if (!call || count <= 0 || count > IOV_MAX) return libc.writev(fd, vectors, count);
  return call.result(write_all(call.home(), fd, {vectors, static_cast<std::size_t>(count)}));
}

[[gnu::noinline]] ssize_t send_in_fiber(int fd, const void* buffer, std::size_t size,
                                        int flags) noexcept {
  const fiber_call call;
  if (!call || is_plain_send(flags)) return libc.send(fd, buffer, size, flags);
  return call.result(send_buffer(call.home(), fd, buffer, size, flags, nullptr, 0));
}

[[gnu::noinline]] ssize_t sendto_in_fiber(int fd, const void* buffer, std::size_t size, int flags,
                                          const sockaddr* address, socklen_t length) noexcept {
  const fiber_call call;
  if (!call || is_plain_send(flags)) return libc.sendto(fd, buffer, size, flags, address, length);
  return call.result(send_buffer(call.home(), fd, buffer, size, flags, address, length));
}

[[gnu::noinline]] ssize_t sendmsg_in_fiber(int fd, const msghdr* message, int flags) noexcept {
  const fiber_call call;
  if (!call || message == nullptr || is_plain_send(flags)) return libc.sendmsg(fd, message, flags);
  return call.result(send_all(call.home(), fd, *message, flags));
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

ssize_t write(int fd, const void* buffer, std::size_t size) {
  if (outside_of_fibers()) [[likely]]
    return libc.write(fd, buffer, size);
  return write_in_fiber(fd, buffer, size);
}

ssize_t writev(int fd, const iovec* vectors, int count) {
  if (outside_of_fibers()) [[likely]]
    return libc.writev(fd, vectors, count);
  return writev_in_fiber(fd, vectors, count);
}

ssize_t send(int fd, const void* buffer, std::size_t size, int flags) {
  if (outside_of_fibers()) [[likely]]
    return libc.send(fd, buffer, size, flags);
  return send_in_fiber(fd, buffer, size, flags);
}

ssize_t sendto(int fd, const void* buffer, std::size_t size, int flags, const sockaddr* address,
               socklen_t length) {
  if (outside_of_fibers()) [[likely]]
    return libc.sendto(fd, buffer, size, flags, address, length);
  return sendto_in_fiber(fd, buffer, size, flags, address, length);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (outside_of_fibers()) [[likely]]
    return libc.sendmsg(fd, message, flags);
  return sendmsg_in_fiber(fd, message, flags);
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  const fiber_call call;
  if (!call || is_plain_send(flags)) return libc.sendmmsg(fd, messages, count, flags);
  return call.result(send_messages(call.home(), fd, messages, count, flags));
}

}  // extern "C"
