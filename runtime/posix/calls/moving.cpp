// SPDX-License-Identifier: MIT
// sendfile(2), splice(2) and tee(2). The kernel can be told not to wait for a pipe, but not for a
// socket: to a socket, sendfile() copies, and splice() moves what has room.
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

/// The two ends of a transfer, either of which may have to wait.
class two_ends {
 public:
  two_ends(thread_state& home, int source, int target, const char* call) noexcept
      : source_(home, source, POLLIN, SO_RCVTIMEO, call),
        target_(home, target, POLLOUT, SO_SNDTIMEO, call) {}

  /// Called when the transfer would wait.
  call_waits::verdict await() noexcept {
    return source_is_ready() ? target_.await() : source_.await();
  }
  bool source_is_ready() const noexcept { return is_ready(source_.fd(), POLLIN | POLLRDHUP); }

 private:
  call_waits source_;
  call_waits target_;
};

/// As retry(), with two ends.
template <typename Attempt, typename Block>
ssize_t retry(two_ends& ends, Attempt attempt, Block block) noexcept {
  for (;;) {
    const ssize_t size = attempt();
    if (size >= 0 || errno != EAGAIN) return size;
    const call_waits::verdict next = ends.await();
    if (next == call_waits::verdict::failed) return size;
    if (next == call_waits::verdict::block) return block();
  }
}

struct splice_arguments {
  int source;
  off64_t* source_offset;
  int target;
  off64_t* target_offset;
  std::size_t size;
  unsigned flags;
};

/// What a socket that is ready for writing takes at least.
constexpr std::size_t least_room = 4'096;

ssize_t splice_once(two_ends& ends, const splice_arguments& part) noexcept {
  const bool from_socket = socket_option(part.source, SO_TYPE) >= 0;
  const bool to_socket = socket_option(part.target, SO_TYPE) >= 0;
  return retry(
      ends,
      [&]() -> ssize_t {
        if (from_socket && !ends.source_is_ready()) return fail(EAGAIN);
        if (to_socket && !is_ready(part.target, POLLOUT)) return fail(EAGAIN);
        return sys::splice(part.source, part.source_offset, part.target, part.target_offset,
                           part.size, part.flags | SPLICE_F_NONBLOCK);
      },
      [&] {
        return libc.splice(part.source, part.source_offset, part.target, part.target_offset,
                           part.size, part.flags);
      });
}

/// Moves what is in the pipe, as the kernel does.
ssize_t splice_to_socket(two_ends& ends, const splice_arguments& all) noexcept {
  std::size_t total = 0;
  ssize_t moved = 0;
  splice_arguments part = all;
  do {
    part.size = std::min(all.size - total, least_room);
    moved = splice_once(ends, part);
    if (moved > 0) total += static_cast<std::size_t>(moved);
  } while (moved > 0 && total < all.size && ends.source_is_ready());
  return total > 0 ? static_cast<ssize_t>(total) : moved;
}

ssize_t splice_in_fiber(thread_state& home, const splice_arguments& all) noexcept {
  two_ends ends(home, all.source, all.target, "splice");
  const bool to_socket = socket_option(all.target, SO_TYPE) >= 0;
  return to_socket ? splice_to_socket(ends, all) : splice_once(ends, all);
}

/// Sends a part of a file.
ssize_t send_part(int target, int source, off_t start, std::size_t size) noexcept {
  constexpr std::size_t most = 65'536;
  const std::unique_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[most]);
  if (buffer == nullptr) return fail(ENOMEM);
  std::size_t total = 0;
  ssize_t sent = 0;
  while (total < size) {
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

ssize_t send_to_socket(int target, int source, off_t* offset, std::size_t size) noexcept {
  const off_t start = offset != nullptr ? *offset : ::lseek(source, 0, SEEK_CUR);
  const ssize_t sent = send_part(target, source, start, size);
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
  return motet::detail::retry(
      waits, [&] { return sys::splice(source, offset, target, nullptr, size, SPLICE_F_NONBLOCK); },
      [&] { return libc.sendfile64(target, source, offset, size); });
}

bool is_pipe(int fd) noexcept {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

ssize_t sendfile_in_fiber(int target, int source, off_t* offset, std::size_t size) noexcept {
  constexpr std::size_t most = 0x7ffff000;  // sendfile(2)
  const fiber_call call;
  const std::size_t part = std::min(size, most);
  if (size > 0 && is_file(source) && !is_nonblocking(target) && call.may_wait()) {
    if (socket_option(target, SO_TYPE) == SOCK_STREAM)
      return call.result(send_to_socket(target, source, offset, part));
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
  if (size == 0 || (flags & SPLICE_F_NONBLOCK) != 0 || !call.may_wait())
    return libc.tee(source, target, size, flags);
  two_ends ends(call.home(), source, target, "tee");
  return call.result(retry(
      ends, [&] { return sys::tee(source, target, size, flags | SPLICE_F_NONBLOCK); },
      [&] { return libc.tee(source, target, size, flags); }));
}

}  // extern "C"
