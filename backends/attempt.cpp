// SPDX-License-Identifier: MIT
// See attempt.hpp.
#include "attempt.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>

#include "base/disabled.hpp"
#include "base/faults.hpp"
#include "base/is_disk.hpp"
#include "base/is_ready.hpp"
#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"
#include "base/verb_table.hpp"
#include "cached_status.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

/// Whether a call bypasses the kernel's cache: then it waits for the disk in spite of RWF_NOWAIT.
/// Source: open(2), O_DIRECT.
bool always_waits_for_disk(int fd) noexcept {
  const int mode = sys::fcntl(fd, F_GETFL);
  return mode >= 0 && (mode & O_DIRECT) != 0 && is_disk(fd);
}

std::size_t size_of(const operation& op, const verb_row& row) noexcept {
  if (row.carries != payload::vectors) return op.length;
  std::size_t size = 0;
  for (std::uint32_t i = 0; i < op.length; ++i) size += op.vectors[i].iov_len;
  return size;
}

/// A pipe that is ready takes PIPE_BUF bytes; with more the call would wait. Source: pipe(7).
std::int32_t write_what_fits(operation& op, const verb_row& row) noexcept {
  if (size_of(op, row) <= PIPE_BUF) return row.call(op, false);
  operation part;
  part.kind = verb::write;
  part.fd = op.fd;
  part.buffer = op.buffer;
  std::size_t size = op.length;
  if (row.carries == payload::vectors) {
    const iovec* first = op.vectors;
    while (first->iov_len == 0) ++first;
    part.buffer = first->iov_base;
    size = first->iov_len;
  }
  part.length = static_cast<std::uint32_t>(std::min<std::size_t>(size, PIPE_BUF));
  return row_of(part.kind).call(part, false);
}

/// For a test that simulates the pipes of Linux before 6.4: whether the kernel would reject
/// RWF_NOWAIT for this operation.
bool is_old_pipe(const operation& op, const verb_row& row) noexcept {
  static const bool switch_off = disabled("pipe_nowait");
  if (!switch_off || row.access != file_access::position || size_of(op, row) == 0) return false;
  struct stat status{};
  if (::fstat(op.fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  return (sys::fcntl(op.fd, F_GETFL) & O_ACCMODE) != (row.fills ? O_WRONLY : O_RDONLY);
}

/// A disk can be waited for only by a call.
std::int32_t call_on_file(operation& op, const verb_row& row) noexcept {
  if (always_waits_for_disk(op.fd)) return operation::would_block_thread;
  std::optional<sigpipe_guard> guard;
  if (row.may_raise_sigpipe) guard.emplace();
  const std::int32_t result = is_old_pipe(op, row) ? -EOPNOTSUPP : row.call(op, true);
  if (result != -EAGAIN && result != -EOPNOTSUPP) return result;
  if (row.access == file_access::offset ? is_disk(op.fd) : on_disk(op.fd)) {
    return operation::would_block_thread;
  }
  if (result != -EOPNOTSUPP || !is_ready(op.fd, row.readiness)) return -EAGAIN;
  return row.fills ? row.call(op, false) : write_what_fits(op, row);
}

/// Returns: -ENOTSOCK if the operation is not a write to a socket.
std::int32_t write_to_socket(operation& op, const verb_row& row) noexcept {
  iovec single{op.buffer, op.length};
  msghdr message{};
  const bool vectored = row.carries == payload::vectors;
  message.msg_iov = vectored ? const_cast<iovec*>(op.vectors) : &single;
  message.msg_iovlen = vectored ? op.length : 1;
  const ssize_t bytes_sent = sys::sendmsg(op.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return bytes_sent < 0 ? -errno : static_cast<std::int32_t>(bytes_sent);
}

/// For a verb that files know too. A function of its own, so that a socket's saves no registers.
[[gnu::noinline]] std::int32_t call_on_any_file(operation& op, const verb_row& row) noexcept {
  if (row.access == file_access::whole) {
    if (op.kind == verb::statx && status_from_cache(op)) return op.result;
    const bool bad = !has_path(op) && sys::fcntl(op.fd, F_GETFD) < 0;
    return bad ? -errno : operation::would_block_thread;
  }
  if (row.access == file_access::position && !row.fills) {
    const std::int32_t bytes_sent = write_to_socket(op, row);
    if (bytes_sent != -ENOTSOCK) return bytes_sent;
  }
  return call_on_file(op, row);
}

std::int32_t call(operation& op) noexcept {
  const verb_row& row = row_of(op.kind);
  return row.access == file_access::none ? row.call(op, true) : call_on_any_file(op, row);
}

/// Makes the call, or has a fault point make it move fewer bytes, or fail.
std::int32_t call_unless_refused(operation& op) noexcept {
  const int fault = faults::next(row_of(op.kind).name.fault);
  if (fault > 0) return -fault;
  const std::uint32_t length = op.length;
  if (fault == faults::falls_short && length > 1) op.length = 1;
  const std::int32_t result = call(op);
  op.length = length;
  return result;
}

}  // namespace

bool may_not_wait(const operation& op) noexcept {
  return row_of(op.kind).has_message_flags && (op.flags & never_wait) != 0;
}

bool has_position(int fd) noexcept {
  return ::lseek(fd, 0, SEEK_CUR) >= 0;
}

bool is_socket(int fd) noexcept {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

/// The position is asked for first, because that is quicker: a pipe or a socket has none.
bool on_disk(int fd) noexcept {
  return has_position(fd) && is_disk(fd);
}

bool pipes_know_nowait() noexcept {
  static const bool supported = [] {
    if (disabled("pipe_nowait")) return false;
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return true;
    std::byte buffer{};
    const iovec vector{&buffer, sizeof buffer};
    const bool knows = sys::preadv2(ends[0], &vector, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN;
    for (const int end : ends) sys::close(end);
    return knows;
  }();
  return supported;
}

bool waits_in_vain(operation& op) noexcept {
  if (!is_ready(op.fd, readiness_of(op))) {
    op.spurious_wakes = 0;
    return false;
  }
  const bool again = op.spurious_wakes > 0;
  if (op.spurious_wakes < most_spurious_wakes) ++op.spurious_wakes;
  return again;
}

}  // namespace detail

bool backend::attempt(operation& op) noexcept {
  do {
    op.result = detail::call_unless_refused(op);
  } while (op.result == -EINTR);
  return op.result != -EAGAIN || detail::may_not_wait(op);
}

short backend::readiness_of(const operation& op) noexcept {
  return detail::readiness_of(op);
}

}}  // namespace motet::MOTET_ABI
