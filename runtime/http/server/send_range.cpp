// SPDX-License-Identifier: MIT
// See http/server/send_range.hpp.
#include "http/server/send_range.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/cancel.hpp>
#include <motet/errors.hpp>
#include <motet/fiber.hpp>
#include <motet/io.hpp>
#include <system_error>

#include "base/sigpipe.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// How much of a file is looked up in the page cache, and submitted to the kernel, at a time. The
/// kernel sends it while other fibers run.
constexpr std::uint64_t window = std::uint64_t{512} * 1024;

// Of Linux 6.5, which older headers do not know. Source: linux/mman.h.
struct cachestat_range {
  std::uint64_t begin;
  std::uint64_t size;
};
struct cachestat_found {
  std::uint64_t cached, dirty, in_writeback, evicted, recently_evicted;  // in pages
};
constexpr long number_of_cachestat = 451;

/// Returns: false also if the kernel cannot tell.
bool is_in_memory(int file, off_t begin, std::uint64_t size) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const cachestat_range range{static_cast<std::uint64_t>(begin), size};
  cachestat_found found{};
  if (::syscall(number_of_cachestat, file, &range, &found, 0) != 0) return false;
  const std::uint64_t first = range.begin / page;
  const std::uint64_t behind = (range.begin + size + page - 1) / page;
  return found.cached >= behind - first;
}

/// A socket in blocking mode would have the thread wait.
bool made_nonblocking(int socket) noexcept {
  const int mode = ::fcntl(socket, F_GETFL);
  if (mode < 0) return false;
  return (mode & O_NONBLOCK) != 0 || ::fcntl(socket, F_SETFL, mode | O_NONBLOCK) == 0;
}

/// Returns: bytes sent, or minus an errno value.
ssize_t send_now(int socket, int file, off_t begin, std::uint64_t size) noexcept {
  const detail::sigpipe_guard guard;
  const ssize_t sent = ::sendfile(socket, file, &begin, static_cast<std::size_t>(size));
  return sent < 0 ? -errno : sent;
}

}  // namespace

std::uint64_t send_cached(const detail::stream_direction& to, int file, off_t begin,
                          std::uint64_t size, clock::duration limit) {
  std::uint64_t sent = 0;
  const bool in_time = move_on_after(limit, [&](deadline& pause) {
    std::error_code error;
    const detail::direction_lock held(to, error);
    if (error) detail::throw_stream_error(error, "sendfile");
    if (held.descriptor() < 0 || !made_nonblocking(held.descriptor())) return;
    while (sent < size) {
      checkpoint();
      const off_t from = begin + static_cast<off_t>(sent);
      const std::uint64_t part = std::min(size - sent, window);
      if (held.descriptor() < 0 || !is_in_memory(file, from, part)) return;
      const ssize_t moved = send_now(held.descriptor(), file, from, part);
      if (moved > 0) {
        sent += static_cast<std::uint64_t>(moved);
        pause.reset(limit);
      } else if (moved == -EAGAIN) {
        io::wait_fd(held.descriptor(), POLLOUT);
      } else if (moved != -EINTR) {
        // The end of a file that was cut, and a kernel that cannot do this, a read finds, too.
        if (moved == 0 || moved == -EINVAL || moved == -ENOSYS) return;
        throw std::system_error(static_cast<int>(-moved), std::system_category(), "sendfile");
      }
    }
  });
  if (!in_time) throw timed_out(call_site::here());
  return sent;
}

}}}  // namespace motet::MOTET_ABI::http
