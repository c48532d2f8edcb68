// SPDX-License-Identifier: MIT
// See http/server/send_range.hpp.
#include "http/server/send_range.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/io/io.hpp>
#include <optional>
#include <system_error>

#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"

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
  cachestat_found pages{};
  if (::syscall(number_of_cachestat, file, &range, &pages, 0) != 0) return false;
  const std::uint64_t first = range.begin / page;
  const std::uint64_t page_end = (range.begin + size + page - 1) / page;
  return pages.cached >= page_end - first;
}

/// A socket in blocking mode would have the thread wait.
bool made_nonblocking(int socket) noexcept {
  const int mode = detail::sys::fcntl(socket, F_GETFL);
  if (mode < 0) return false;
  return (mode & O_NONBLOCK) != 0 || detail::sys::fcntl(socket, F_SETFL, mode | O_NONBLOCK) == 0;
}

/// Returns: bytes sent, or minus an errno value.
ssize_t send_now(int socket, int file, off_t begin, std::uint64_t size) noexcept {
  const detail::sigpipe_guard guard;
  const ssize_t count = detail::sys::sendfile(socket, file, &begin, static_cast<std::size_t>(size));
  return count < 0 ? -errno : count;
}

/// Sends once, or waits until the socket is writable.
/// Returns: the bytes sent, perhaps 0; std::nullopt if the caller should read instead: without a
///          socket, if the bytes are not cached, at the end of a file that has been truncated, and
///          if the kernel does not support this.
std::optional<std::uint64_t> send_part(int socket, int file, off_t begin, std::uint64_t size) {
  if (socket < 0 || !is_in_memory(file, begin, size)) return std::nullopt;
  const ssize_t count = send_now(socket, file, begin, size);
  if (count > 0) return static_cast<std::uint64_t>(count);
  if (count == 0 || count == -EINVAL || count == -ENOSYS) return std::nullopt;
  if (count == -EAGAIN) {
    io::wait_fd(socket, POLLOUT);
  } else if (count != -EINTR) {
    throw std::system_error(static_cast<int>(-count), std::system_category(), "sendfile");
  }
  return 0;
}

}  // namespace

std::uint64_t send_cached(const detail::stream_direction& target, int file, off_t begin,
                          std::uint64_t size, clock::duration limit) {
  std::uint64_t bytes_sent = 0;
  const bool in_time = move_on_after(limit, [&](deadline& pause) {
    std::error_code error;
    const detail::direction_lock lock(target, error);
    if (error) detail::throw_stream_error(error, "sendfile");
    if (lock.descriptor() < 0 || !made_nonblocking(lock.descriptor())) return;
    while (bytes_sent < size) {
      checkpoint();
      const off_t offset = begin + static_cast<off_t>(bytes_sent);
      const std::uint64_t part = std::min(size - bytes_sent, window);
      const std::optional<std::uint64_t> count = send_part(lock.descriptor(), file, offset, part);
      if (!count.has_value()) return;
      if (*count > 0) pause.reset(limit);
      bytes_sent += *count;
    }
  });
  if (!in_time) throw timed_out(call_site::here());
  return bytes_sent;
}

}}}  // namespace motet::MOTET_ABI::http
