// SPDX-License-Identifier: MIT
// connect(2) and accept(2): the backend's own operations, with the flags that the program gives.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

int finish(std::int32_t result, int error_of_limit) noexcept {
  if (result >= 0) return result;
  return fail(result == -ETIME ? error_of_limit : -result);
}

/// Of an attempt that an earlier call has left behind.
std::int32_t await_attempt(thread_state& home, int fd, on_signal effect,
                           clock::time_point due) noexcept {
  const std::int32_t result = await_ready(home, fd, POLLOUT, "connect", effect, due);
  if (result == -ETIME) return -EALREADY;
  return result < 0 ? result : -socket_option(fd, SO_ERROR);
}

/// Whether the peer, or the way to it, has ended the attempt.
constexpr bool means_failed_attempt(int error) noexcept {
  return error == ECONNREFUSED || error == ECONNRESET || error == ETIMEDOUT ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

/// After SO_SNDTIMEO the attempt goes on, except that of a Unix socket, which waits for room. A
/// socket that a backend has connected without waiting would report a failure once more: the call
/// forgets it, as one that waits does.
/// Source: connect(2), EINPROGRESS, EAGAIN, AF_UNSPEC; socket(7), SO_SNDTIMEO.
int connect_in_fiber(thread_state& home, int fd, const sockaddr* address,
                     socklen_t length) noexcept {
  operation op;
  op.kind = verb::connect;
  op.fd = fd;
  op.address = const_cast<sockaddr*>(address);
  op.length = length;
  const bool is_unix = socket_option(fd, SO_DOMAIN) == AF_UNIX;
  const clock::time_point due = time_limit_of(home, fd, SO_SNDTIMEO);
  const on_signal effect = effect_with(due);
  std::int32_t result = perform(home, op, "connect", effect, due);
  if (result == -EALREADY) result = await_attempt(home, fd, effect, due);
  if (result < 0 && !is_unix && means_failed_attempt(-result)) {
    const sockaddr none{AF_UNSPEC, {}};
    sys::connect(fd, &none, sizeof none);
  }
  return finish(result, is_unix ? EAGAIN : EINPROGRESS);
}

int accept_in_fiber(thread_state& home, int fd, sockaddr* address, socklen_t* length,
                    int flags) noexcept {
  operation op;
  op.kind = verb::accept;
  op.fd = fd;
  op.flags = flags;
  op.address = address;
  op.address_length = length;
  if (is_ready(fd, POLLIN))
    return finish(perform_ready(home, op, "accept", on_signal::restart), EAGAIN);
  const clock::time_point due = time_limit_of(home, fd, SO_RCVTIMEO);
  return finish(perform(home, op, "accept", effect_with(due), due), EAGAIN);
}

/// A datagram socket's connect() does not wait, and must not be refused by an interruption.
bool connects_in_fiber(const fiber_call& call, int fd) noexcept {
  if (!call || is_nonblocking(fd) || !call.may_wait()) return false;
  const int type = socket_option(fd, SO_TYPE);
  return type == SOCK_STREAM || type == SOCK_SEQPACKET;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int connect(int fd, const sockaddr* address, socklen_t length) {
  const fiber_call call;
  if (!connects_in_fiber(call, fd)) return libc.connect(fd, address, length);
  return call.result(connect_in_fiber(call.home(), fd, address, length));
}

int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  const fiber_call call;
  const bool is_usual = (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == 0;
  if (!call || !is_usual || is_nonblocking(fd) || !call.may_wait())
    return libc.accept4(fd, address, length, flags);
  return call.result(accept_in_fiber(call.home(), fd, address, length, flags));
}

int accept(int fd, sockaddr* address, socklen_t* length) {
  return ::accept4(fd, address, length, 0);
}

}  // extern "C"
