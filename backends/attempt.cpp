// SPDX-License-Identifier: MIT
// See attempt.hpp. A descriptor of the program must keep its mode, so each call has its own way not
// to block: MSG_DONTWAIT for sockets, RWF_NOWAIT for pipes and files, a look with poll(2) for the
// rest, and for connect(2) the shortest send timeout there is.
#include "attempt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "sigpipe.hpp"
#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::uint8_t stage_connecting = 1;

/// Returns: `result`; but for EINTR EINPROGRESS, since an interrupted connection attempt goes on.
/// Source: connect(2), EINTR.
std::int32_t goes_on(std::int32_t result) noexcept {
  return result == -EINTR ? -EINPROGRESS : result;
}

template <typename T>
std::int32_t result_or_errno(T result) noexcept {
  return result < 0 ? -errno : static_cast<std::int32_t>(result);
}

/// A signal interrupts poll(2) also when it does not wait. Source: poll(2), EINTR.
int poll_now(pollfd& look) noexcept {
  for (;;) {
    const int found = ::poll(&look, 1, 0);
    if (found >= 0 || errno != EINTR) return found;
  }
}

bool ready(int fd, short events) noexcept {
  pollfd look{fd, events, 0};
  return poll_now(look) > 0;
}

/// Whether a call bypasses the kernel's cache: then it waits for the disk in spite of RWF_NOWAIT.
/// Source: open(2), O_DIRECT.
bool always_waits_for_disk(int fd) noexcept {
  const int mode = ::fcntl(fd, F_GETFL);
  return mode >= 0 && (mode & O_DIRECT) != 0 && on_disk(fd);
}

/// Calls nowait(), which returns -EAGAIN when it would wait and -EOPNOTSUPP when it cannot tell; in
/// the latter case calls plain() if the descriptor is ready. For a disk there is no readiness to
/// wait for, so a call that would wait must block a thread.
template <typename Nowait, typename Plain>
std::int32_t without_waiting(int fd, short events, Nowait nowait, Plain plain) noexcept {
  if (always_waits_for_disk(fd)) return operation::would_block_thread;
  const std::int32_t result = nowait();
  if (result != -EAGAIN && result != -EOPNOTSUPP) return result;
  if (on_disk(fd)) return operation::would_block_thread;
  return result == -EOPNOTSUPP && ready(fd, events) ? plain() : -EAGAIN;
}

struct vectors {
  const iovec* first;
  int count;
};

std::int32_t try_read(int fd, vectors into) noexcept {
  return without_waiting(
      fd, POLLIN,
      [&] { return result_or_errno(::preadv2(fd, into.first, into.count, -1, RWF_NOWAIT)); },
      [&] { return result_or_errno(::readv(fd, into.first, into.count)); });
}

std::int32_t try_write(int fd, vectors from) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.first);
  message.msg_iovlen = static_cast<std::size_t>(from.count);
  const std::int32_t sent = result_or_errno(::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  if (sent != -ENOTSOCK) return sent;
  const sigpipe_guard guard;
  return without_waiting(
      fd, POLLOUT,
      [&] { return result_or_errno(::pwritev2(fd, from.first, from.count, -1, RWF_NOWAIT)); },
      [&] { return result_or_errno(::writev(fd, from.first, from.count)); });
}

std::int32_t try_accept(const operation& op) noexcept {
  if (!op.nonblocking && !ready(op.fd, POLLIN)) return -EAGAIN;
  return result_or_errno(::accept4(op.fd, op.address, op.address_length, op.flags));
}

/// Starts to connect. A blocking socket waits for the peer, but no longer than its send timeout;
/// the shortest timeout is one tick of the kernel's clock. Source: socket(7), SO_SNDTIMEO.
std::int32_t start_connecting(const operation& op) noexcept {
  const int mode = ::fcntl(op.fd, F_GETFL);
  if (mode < 0) return -errno;
  if ((mode & O_NONBLOCK) != 0) {
    return goes_on(result_or_errno(::connect(op.fd, op.address, op.length)));
  }
  timeval before{};
  socklen_t size = sizeof before;
  if (::getsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &before, &size) != 0) return -errno;
  const timeval shortest{0, 1};
  ::setsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &shortest, sizeof shortest);
  const std::int32_t result = goes_on(result_or_errno(::connect(op.fd, op.address, op.length)));
  ::setsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof before);
  return result;
}

std::int32_t try_connect(operation& op) noexcept {
  if (op.stage != stage_connecting) {
    const std::int32_t result = start_connecting(op);
    if (result != -EINPROGRESS) return result;
    op.stage = stage_connecting;
    return -EAGAIN;
  }
  if (!ready(op.fd, POLLOUT)) return -EAGAIN;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(op.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
  return -error;
}

std::int32_t look_at(const operation& op) noexcept {
  pollfd look{op.fd, static_cast<short>(op.flags), 0};
  const int found = poll_now(look);
  if (found < 0) return -errno;
  if (found == 0) return -EAGAIN;
  return (look.revents & POLLNVAL) != 0 ? -EBADF : look.revents;
}

std::int32_t call(operation& op) noexcept {
  const iovec single{op.buffer, op.length};
  switch (op.kind) {
    case verb::read:
      return try_read(op.fd, {&single, 1});
    case verb::readv:
      return try_read(op.fd, {op.vectors, static_cast<int>(op.length)});
    case verb::write:
      return try_write(op.fd, {&single, 1});
    case verb::writev:
      return try_write(op.fd, {op.vectors, static_cast<int>(op.length)});
    case verb::recv:
      return result_or_errno(::recv(op.fd, op.buffer, op.length, op.flags | MSG_DONTWAIT));
    case verb::send:
      return result_or_errno(::send(op.fd, op.buffer, op.length, op.flags | MSG_DONTWAIT));
    case verb::accept:
      return try_accept(op);
    case verb::connect:
      return try_connect(op);
    case verb::wait_fd:
      return look_at(op);
  }
  return -EINVAL;
}

/// Makes the call, or has a fault point make it move fewer bytes, or fail.
std::int32_t call_unless_refused(operation& op) noexcept {
  const int refused = faults::next(name_of(op.kind));
  if (refused > 0) return -refused;
  const std::uint32_t length = op.length;
  if (refused == faults::falls_short && length > 1) op.length = 1;
  const std::int32_t result = call(op);
  op.length = length;
  return result;
}

bool may_not_wait(const operation& op) noexcept {
  const bool has_message_flags = op.kind == verb::recv || op.kind == verb::send;
  return has_message_flags && (op.flags & MSG_DONTWAIT) != 0;
}

}  // namespace

/// The position is asked for first, because that is quicker: a pipe or a socket has none.
bool on_disk(int fd) noexcept {
  if (::lseek(fd, 0, SEEK_CUR) < 0) return false;
  struct stat found{};
  return ::fstat(fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISBLK(found.st_mode));
}

bool waits_in_vain(operation& op) noexcept {
  if (!ready(op.fd, readiness_of(op))) {
    op.fruitless = 0;
    return false;
  }
  const bool again = op.fruitless > 0;
  if (op.fruitless < most_fruitless) ++op.fruitless;
  return again;
}

bool attempt(operation& op) noexcept {
  do {
    op.result = call_unless_refused(op);
  } while (op.result == -EINTR);
  return op.result != -EAGAIN || may_not_wait(op);
}

const char* name_of(verb kind) noexcept {
  switch (kind) {
    case verb::read:
    case verb::readv:
      return "read";
    case verb::write:
    case verb::writev:
      return "write";
    case verb::recv:
      return "recv";
    case verb::send:
      return "send";
    case verb::accept:
      return "accept";
    case verb::connect:
      return "connect";
    case verb::wait_fd:
      return "wait_fd";
  }
  return "?";
}

short readiness_of(const operation& op) noexcept {
  switch (op.kind) {
    case verb::read:
    case verb::readv:
    case verb::recv:
    case verb::accept:
      return POLLIN;
    case verb::write:
    case verb::writev:
    case verb::send:
    case verb::connect:
      return POLLOUT;
    case verb::wait_fd:
      return static_cast<short>(op.flags);
  }
  return 0;
}

}}}  // namespace motet::MOTET_ABI::detail
