// SPDX-License-Identifier: MIT
// Helpers of streams and listeners.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <stdexcept>

#include "base/faults.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Waits for a turn. Returns: 0, -ECANCELED or -EBADF.
/// Throws: std::logic_error if a fiber of another thread has the turn.
inline std::int32_t acquire_turn(detail::stream_queue& queue, const char* call, int fd) {
  switch (queue.acquire(call, fd)) {
    case detail::queue_result::acquired:
      return 0;
    case detail::queue_result::interrupted:
      return -ECANCELED;
    case detail::queue_result::closed:
      return -EBADF;
  }
  return 0;
}

/// Holds a turn until its end, or the reason why it has not got the turn.
class stream_turn {
 public:
  /// `refusal` is what acquire_turn() has returned for `queue`.
  stream_turn(detail::stream_queue& queue, std::int32_t refusal) noexcept
      : queue_(queue), refusal_(refusal) {}
  /// Throws: as acquire_turn().
  stream_turn(detail::stream_queue& queue, const char* call, int fd)
      : stream_turn(queue, acquire_turn(queue, call, fd)) {}
  stream_turn(const stream_turn&) = delete;
  stream_turn& operator=(const stream_turn&) = delete;
  ~stream_turn() {
    if (refusal_ == 0) queue_.release();
  }

  /// Returns: 0, -ECANCELED or -EBADF.
  std::int32_t refusal() const noexcept { return refusal_; }

 private:
  detail::stream_queue& queue_;
  std::int32_t refusal_;
};

/// Throws: std::invalid_argument unless `address` is a Unix socket address, as `local` says, or is
/// none.
inline endpoint of_kind(const endpoint& address, bool local) {
  if ((address.address()->sa_family == AF_UNIX) == local) return address;
  throw std::invalid_argument(address.to_string() + (local ? " is not a Unix socket address"
                                                           : " is a Unix socket address"));
}

/// Returns: a socket in non-blocking mode: with a blocking one only io_uring could connect without
///          blocking the thread for a moment.
/// Throws: std::system_error.
inline fd new_socket(int family, int kind) {
  fd socket_fd(detail::faults::call("socket", detail::sockets::socket, family,
                                    kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_fd) detail::throw_errno(errno, "socket");
  return socket_fd;
}

/// Returns: the endpoint that `get_name`, getsockname(2) or getpeername(2), reports for `fd`.
template <typename GetName>
endpoint name_of(int fd, const char* call, GetName get_name) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  auto* address = reinterpret_cast<sockaddr*>(&name);
  if (get_name(fd, address, &size) != 0) detail::throw_errno(errno, call, fd);
  return endpoint(address, size);
}

}}}  // namespace motet::MOTET_ABI::net
