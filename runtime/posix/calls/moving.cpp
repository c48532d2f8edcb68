// SPDX-License-Identifier: MIT
// sendfile(2), splice(2) and tee(2). The kernel can be told not to wait for a pipe, but not for a
// socket. So sendfile() to a socket copies, and splice() moves what fits into the buffer.
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>

#include "base/is_ready.hpp"
#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/retry.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

bool is_pipe(int fd) noexcept {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

/// The two ends of a transfer, either of which may have to wait.
class two_ends {
 public:
  two_ends(thread_state& home, int source, int target, const char* call) noexcept
      : source_(home, source, POLLIN, SO_RCVTIMEO, call),
        target_(home, target, POLLOUT, SO_SNDTIMEO, call),
        source_use_(home, source),
        target_use_(home, target) {}

  /// Called when the transfer would wait.
  call_waits::verdict await() noexcept {
    const call_waits::verdict next = source_is_ready() ? target_.await() : source_.await();
    if (next != call_waits::verdict::retry) return next;
    if (!source_use_.closed() && !target_use_.closed()) return next;
    errno = EBADF;
    return call_waits::verdict::failed;
  }
  void progressed() noexcept {
    source_.progressed();
    target_.progressed();
  }
  bool source_is_ready() const noexcept { return is_ready(source_.fd(), POLLIN | POLLRDHUP); }
  bool target_is_ready() const noexcept { return is_ready(target_.fd(), POLLOUT); }

 private:
  call_waits source_;
  call_waits target_;
  noted_use source_use_;
  noted_use target_use_;
};

struct splice_arguments {
  int source;
  off64_t* source_offset;
  int target;
  off64_t* target_offset;
  std::size_t size;
  unsigned flags;
};

ssize_t splice_and_block(const splice_arguments& part) noexcept {
  return libc.splice(part.source, part.source_offset, part.target, part.target_offset, part.size,
                     part.flags);
}

/// SPLICE_F_NONBLOCK is for pipes: other ends are asked by poll(2) whether they would wait.
ssize_t splice_once(two_ends& ends, const splice_arguments& part) noexcept {
  const bool asks_source = !is_pipe(part.source) && !is_file(part.source);
  const bool asks_target = !is_pipe(part.target) && !is_file(part.target);
  return retry(
      ends,
      [&]() -> ssize_t {
        if (asks_source && !ends.source_is_ready()) return fail(EAGAIN);
        if (asks_target && !ends.target_is_ready()) return fail(EAGAIN);
        return sys::splice(part.source, part.source_offset, part.target, part.target_offset,
                           part.size, part.flags | SPLICE_F_NONBLOCK);
      },
      [&] { return splice_and_block(part); });
}

/// What a socket that is ready for writing takes at least.
constexpr std::size_t least_room = 4'096;

/// Returns when the pipe is empty, as the kernel does.
ssize_t splice_to_stream(two_ends& ends, const splice_arguments& all) noexcept {
  std::size_t total = 0;
  ssize_t moved = 0;
  splice_arguments part = all;
  do {
    part.size = std::min(all.size - total, least_room);
    moved = splice_once(ends, part);
    if (moved > 0) total += static_cast<std::size_t>(moved);
    ends.progressed();
  } while (moved > 0 && total < all.size && ends.source_is_ready());
  return total > 0 ? static_cast<ssize_t>(total) : moved;
}

/// Whether a pipe has no reader, or a descriptor is not open.
bool has_failed(int fd) noexcept {
  pollfd look{fd, 0, 0};
  return fd < 0 || (sys::poll(&look, 1, 0) > 0 && (look.revents & (POLLERR | POLLNVAL)) != 0);
}

/// Whether the kernel refuses the call, or makes it without a wait: with no pipe, with a pipe that
/// nobody reads, or with one in non-blocking mode, which counts for both ends.
bool never_waits(const splice_arguments& all) noexcept {
  const bool from_pipe = is_pipe(all.source);
  const bool to_pipe = is_pipe(all.target);
  if (!from_pipe && !to_pipe) return true;
  if (all.source < 0 || has_failed(all.target)) return true;
  if (!from_pipe && all.source_offset != nullptr && !is_file(all.source)) return true;
  return (from_pipe && is_nonblocking(all.source)) || (to_pipe && is_nonblocking(all.target));
}

ssize_t splice_in_fiber(thread_state& home, const splice_arguments& all) noexcept {
  if (never_waits(all)) return splice_and_block(all);
  two_ends ends(home, all.source, all.target, "splice");
  return socket_option(all.target, SO_TYPE) == SOCK_STREAM ? splice_to_stream(ends, all)
                                                           : splice_once(ends, all);
}

/// Sends a part of a file, until another fiber closes one of the two.
ssize_t send_part(thread_state& home, int target, int source, off_t start,
                  std::size_t size) noexcept {
  constexpr std::size_t most = 65'536;
  const std::unique_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[most]);
  if (buffer == nullptr) return fail(ENOMEM);
  const noted_use source_use(home, source);
  const noted_use target_use(home, target);
  std::size_t total = 0;
  ssize_t sent = 0;
  while (total < size && !source_use.closed() && !target_use.closed()) {
    const std::size_t part = std::min(size - total, most);
    const off_t position = start + static_cast<off_t>(total);
    const ssize_t length = sys::pread(source, buffer.get(), part, position);
    if (length <= 0) {
      sent = length;
      break;
    }
    const int flags = total > 0 ? MSG_NOSIGNAL : 0;
    sent = ::send(target, buffer.get(), static_cast<std::size_t>(length), flags);
    if (sent > 0) total += static_cast<std::size_t>(sent);
    if (sent < length) break;
  }
  return total > 0 ? static_cast<ssize_t>(total) : sent;
}

/// A file that was opened with O_DIRECT wants another buffer: the kernel has one.
ssize_t send_to_socket(thread_state& home, int target, int source, off_t* offset,
                       std::size_t size) noexcept {
  const off_t start = offset != nullptr ? *offset : ::lseek(source, 0, SEEK_CUR);
  const ssize_t sent = send_part(home, target, source, start, size);
  if (sent < 0 && errno == EINVAL) return libc.sendfile64(target, source, offset, size);
  if (sent <= 0) return sent;
  if (offset != nullptr) {
    *offset = start + sent;
  } else {
    ::lseek(source, start + sent, SEEK_SET);
  }
  return sent;
}

/// Unlike a socket, a pipe gets no more than it has room for.
ssize_t send_to_pipe(thread_state& home, int target, int source, off_t* offset,
                     std::size_t size) noexcept {
  call_waits waits(home, target, POLLOUT, SO_SNDTIMEO, "sendfile");
  return retry(
      waits, [&] { return sys::splice(source, offset, target, nullptr, size, SPLICE_F_NONBLOCK); },
      [&] { return libc.sendfile64(target, source, offset, size); });
}

ssize_t sendfile_in_fiber(int target, int source, off_t* offset, std::size_t size) noexcept {
  constexpr std::size_t most = 0x7ffff000;  // sendfile(2)
  const fiber_call call;
  const std::size_t part = std::min(size, most);
  if (size > 0 && is_file(source) && !is_nonblocking(target) && call.may_wait()) {
    if (socket_option(target, SO_TYPE) == SOCK_STREAM)
      return call.result(send_to_socket(call.home(), target, source, offset, part));
    if (is_pipe(target))
      return call.result(send_to_pipe(call.home(), target, source, offset, part));
  }
  return libc.sendfile64(target, source, offset, size);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

ssize_t sendfile64(int target, int source, off64_t* offset, std::size_t size) noexcept {
  return sendfile_in_fiber(target, source, offset, size);
}

ssize_t sendfile(int target, int source, off_t* offset, std::size_t size) noexcept {
  return sendfile_in_fiber(target, source, offset, size);
}

ssize_t splice(int source, off64_t* source_offset, int target, off64_t* target_offset,
               std::size_t size, unsigned flags) {
  const fiber_call call;
  if (size == 0 || (flags & SPLICE_F_NONBLOCK) != 0 || !call.may_wait())
    return libc.splice(source, source_offset, target, target_offset, size, flags);
  return call.result(
      splice_in_fiber(call.home(), {source, source_offset, target, target_offset, size, flags}));
}

ssize_t tee(int source, int target, std::size_t size, unsigned flags) {
  const fiber_call call;
  const bool is_refused = !is_pipe(source) || !is_pipe(target);
  const bool never_waits = size == 0 || (flags & SPLICE_F_NONBLOCK) != 0;
  if (never_waits || is_refused || is_nonblocking(source) || is_nonblocking(target) ||
      !call.may_wait())
    return libc.tee(source, target, size, flags);
  two_ends ends(call.home(), source, target, "tee");
  return call.result(retry(
      ends, [&] { return sys::tee(source, target, size, flags | SPLICE_F_NONBLOCK); },
      [&] { return libc.tee(source, target, size, flags); }));
}

}  // extern "C"
