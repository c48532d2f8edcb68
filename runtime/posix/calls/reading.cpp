// SPDX-License-Identifier: MIT
// read(2) and recv(2), and their relatives.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/calls/control_data.hpp"
#include "posix/calls/unmoved.hpp"
#include "posix/functions.hpp"
#include "posix/retry.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using vector_span = std::span<const iovec>;

ssize_t read_and_block(int fd, vector_span vectors) noexcept {
  return libc.readv(fd, vectors.data(), static_cast<int>(vectors.size()));
}

/// RWF_NOWAIT reads only the cached part of a file; the C library reads the rest.
ssize_t read_rest(int fd, unmoved& rest, ssize_t total) noexcept {
  while (!rest.empty()) {
    const ssize_t size = read_and_block(fd, rest.next());
    if (size <= 0) break;
    total += size;
    rest.moved(static_cast<std::size_t>(size));
  }
  return total;
}

/// A socket knows MSG_DONTWAIT, whatever the kernel. Terminals, and what else does not know
/// RWF_NOWAIT, are asked by poll(2). Sets `is_cached` if it has read what was in memory of a file.
ssize_t read_now(int fd, vector_span vectors, bool& is_cached) noexcept {
  const iovec& first = vectors.front();
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors.data());
  message.msg_iovlen = vectors.size();
  const ssize_t received = vectors.size() == 1
                               ? sys::recv(fd, first.iov_base, first.iov_len, MSG_DONTWAIT)
                               : sys::recvmsg(fd, &message, MSG_DONTWAIT);
  if (received >= 0 || errno != ENOTSOCK) return received;
  const auto count = static_cast<int>(vectors.size());
  const ssize_t size = sys::preadv2(fd, vectors.data(), count, -1, RWF_NOWAIT);
  is_cached = size > 0;
  if (size >= 0 || errno != EOPNOTSUPP) return size;
  return is_ready(fd, POLLIN) ? read_and_block(fd, vectors) : fail(EAGAIN);
}

/// Calls `attempt()`. A datagram socket that has been shut down fails with EAGAIN where a call that
/// waits finds its end; what has come in the meantime is not lost.
template <typename Attempt, typename End>
ssize_t attempt_or_end(const call_waits& waits, Attempt attempt, End note_end) noexcept {
  ssize_t size = attempt();
  if (size >= 0 || errno != EAGAIN || !waits.began()) return size;
  const int fd = waits.fd();
  if (is_ready(fd, POLLRDHUP) && socket_option(fd, SO_TYPE) == SOCK_DGRAM) {
    size = attempt();
    if (size >= 0 || errno != EAGAIN) return size;
    note_end();
    return 0;
  }
  return fail(EAGAIN);
}

ssize_t read_some(thread_state& home, int fd, vector_span vectors) noexcept {
  call_waits waits(home, fd, POLLIN, SO_RCVTIMEO, "read");
  bool is_cached = false;
  const auto attempt = [&] { return read_now(fd, vectors, is_cached); };
  const ssize_t size = retry(
      waits, [&] { return attempt_or_end(waits, attempt, [] {}); },
      [&] { return read_and_block(fd, vectors); });
  if (size < 0 && waits.expired()) return ::isatty(fd) == 1 ? 0 : fail(EAGAIN);
  if (size > 0 && !waits.began()) let_others_run(home, fd);
  if (!is_cached) return size;
  unmoved rest(vectors);
  rest.moved(static_cast<std::size_t>(size));
  return rest.empty() || !is_file(fd) ? size : read_rest(fd, rest, size);
}

/// Whether MSG_WAITALL counts. A Unix socket that is peeked at does not wait for more.
bool collects(int fd, int flags) noexcept {
  if ((flags & MSG_WAITALL) == 0 || is_nonblocking(fd)) return false;
  if (socket_option(fd, SO_TYPE) != SOCK_STREAM) return false;
  return (flags & MSG_PEEK) == 0 || socket_option(fd, SO_DOMAIN) != AF_UNIX;
}

ssize_t receive_once(call_waits& waits, msghdr& message, int flags) noexcept {
  const msghdr requested = message;
  const auto attempt = [&] {
    message = requested;
    return sys::recvmsg(waits.fd(), &message, flags | MSG_DONTWAIT);
  };
  const auto note_end = [&] {
    message.msg_namelen = 0;
    message.msg_controllen = 0;
    message.msg_flags = flags & MSG_CMSG_CLOEXEC;
  };
  return retry(
      waits, [&] { return attempt_or_end(waits, attempt, note_end); },
      [&] {
        message = requested;
        return libc.recvmsg(waits.fd(), &message, flags);
      });
}

/// Whether more may come: the peer has not gone, or has left something. An error is left to the
/// next call.
bool may_continue(int fd) noexcept {
  int size = 0;
  return !has_hung_up(fd) || (::ioctl(fd, FIONREAD, &size) == 0 && size > 0);
}

ssize_t receive_part(call_waits& waits, msghdr& part, int flags) noexcept {
  const msghdr requested = part;
  return retry(
      waits,
      [&]() -> ssize_t {
        part = requested;
        return may_continue(waits.fd()) ? sys::recvmsg(waits.fd(), &part, flags | MSG_DONTWAIT) : 0;
      },
      [&] { return libc.recvmsg(waits.fd(), &part, flags); });
}

/// Collects the rest for MSG_WAITALL. Passed descriptors end a call in the kernel, too.
ssize_t receive_rest(call_waits& waits, msghdr& message, std::size_t control_size, ssize_t total,
                     int flags) noexcept {
  unmoved rest({message.msg_iov, message.msg_iovlen});
  rest.moved(static_cast<std::size_t>(total));
  later_control control(control_size);
  while (!rest.empty()) {
    waits.progressed();
    const vector_span next = rest.next();
    msghdr part{};
    part.msg_iov = const_cast<iovec*>(next.data());
    part.msg_iovlen = next.size();
    control.prepare(part);
    const ssize_t size = receive_part(waits, part, flags);
    if (size <= 0) break;
    total += size;
    rest.moved(static_cast<std::size_t>(size));
    if (control.move(part, message)) break;
  }
  return total;
}

/// Peeks until all is there, or no more comes.
ssize_t peek_all(call_waits& waits, msghdr& message, int flags) noexcept {
  const std::size_t size = unmoved({message.msg_iov, message.msg_iovlen}).size();
  const msghdr requested = message;
  for (;;) {
    message = requested;
    const ssize_t peeked = receive_once(waits, message, flags);
    const bool complete = peeked <= 0 || static_cast<std::size_t>(peeked) >= size;
    if (complete || is_ready(waits.fd(), POLLRDHUP)) return peeked;
    switch (waits.pause()) {
      case call_waits::verdict::retry:
        break;
      case call_waits::verdict::failed:
        return peeked;
      case call_waits::verdict::block:
        message = requested;
        return libc.recvmsg(waits.fd(), &message, flags);
    }
  }
}

ssize_t receive(thread_state& home, int fd, msghdr& message, int flags) noexcept {
  call_waits waits(home, fd, POLLIN, SO_RCVTIMEO, "recv");
  const bool takes_all = collects(fd, flags);
  if (takes_all && (flags & MSG_PEEK) != 0) return peek_all(waits, message, flags);
  const std::size_t control_size = message.msg_controllen;
  const ssize_t first = receive_once(waits, message, flags);
  if (first > 0 && !waits.began()) let_others_run(home, fd);
  if (first <= 0 || !takes_all || has_descriptors(message)) return first;
  return receive_rest(waits, message, control_size, first, flags);
}

ssize_t receive_buffer(thread_state& home, int fd, void* buffer, std::size_t size, int flags,
                       sockaddr* address, socklen_t* length) noexcept {
  iovec vector{buffer, size};
  msghdr message{};
  message.msg_name = address;
  message.msg_namelen = address == nullptr || length == nullptr ? 0 : *length;
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  const ssize_t received = receive(home, fd, message, flags);
  if (received >= 0 && address != nullptr && length != nullptr) *length = message.msg_namelen;
  return received;
}

/// The time limit is looked at after each message, as in the kernel.
/// Source: recvmmsg(2), BUGS.
int receive_messages(thread_state& home, int fd, mmsghdr* messages, unsigned count, int flags,
                     timespec* limit) noexcept {
  const clock::time_point due = limit == nullptr ? no_limit : home.time.after(span_of(*limit));
  const bool only_first_waits = (flags & MSG_WAITFORONE) != 0;
  const int one = flags & ~MSG_WAITFORONE;
  unsigned received = 0;
  while (received < count) {
    msghdr& message = messages[received].msg_hdr;
    const bool waits = received == 0 || !only_first_waits;
    const ssize_t size =
        waits ? receive(home, fd, message, one) : sys::recvmsg(fd, &message, one | MSG_DONTWAIT);
    if (size < 0) break;
    messages[received++].msg_len = static_cast<unsigned>(size);
    if (due != no_limit && home.time.now() >= due) break;
  }
  if (limit != nullptr) *limit = span_until(home, due);
  return received > 0 || count == 0 ? static_cast<int>(received) : -1;
}

[[gnu::noinline]] ssize_t read_in_fiber(int fd, void* buffer, std::size_t size) noexcept {
  const fiber_call call;
  if (!call || size == 0) return libc.read(fd, buffer, size);
  const iovec vector{buffer, size};
  return call.result(read_some(call.home(), fd, {&vector, 1}));
}

[[gnu::noinline]] ssize_t readv_in_fiber(int fd, const iovec* vectors, int count) noexcept {
  const fiber_call call;
  if (!call || count <= 0 || count > IOV_MAX) return libc.readv(fd, vectors, count);
  return call.result(read_some(call.home(), fd, {vectors, static_cast<std::size_t>(count)}));
}

[[gnu::noinline]] ssize_t recv_in_fiber(int fd, void* buffer, std::size_t size,
                                        int flags) noexcept {
  const fiber_call call;
  if (!call || never_waits(flags)) return libc.recv(fd, buffer, size, flags);
  return call.result(receive_buffer(call.home(), fd, buffer, size, flags, nullptr, nullptr));
}

[[gnu::noinline]] ssize_t recvfrom_in_fiber(int fd, void* buffer, std::size_t size, int flags,
                                            sockaddr* address, socklen_t* length) noexcept {
  const fiber_call call;
  if (!call || never_waits(flags)) return libc.recvfrom(fd, buffer, size, flags, address, length);
  return call.result(receive_buffer(call.home(), fd, buffer, size, flags, address, length));
}

[[gnu::noinline]] ssize_t recvmsg_in_fiber(int fd, msghdr* message, int flags) noexcept {
  const fiber_call call;
  if (!call || message == nullptr || never_waits(flags)) return libc.recvmsg(fd, message, flags);
  return call.result(receive(call.home(), fd, *message, flags));
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

ssize_t read(int fd, void* buffer, std::size_t size) {
  if (outside_of_fibers()) [[likely]]
    return libc.read(fd, buffer, size);
  return read_in_fiber(fd, buffer, size);
}

ssize_t readv(int fd, const iovec* vectors, int count) {
  if (outside_of_fibers()) [[likely]]
    return libc.readv(fd, vectors, count);
  return readv_in_fiber(fd, vectors, count);
}

ssize_t recv(int fd, void* buffer, std::size_t size, int flags) {
  if (outside_of_fibers()) [[likely]]
    return libc.recv(fd, buffer, size, flags);
  return recv_in_fiber(fd, buffer, size, flags);
}

ssize_t recvfrom(int fd, void* buffer, std::size_t size, int flags, sockaddr* address,
                 socklen_t* length) {
  if (outside_of_fibers()) [[likely]]
    return libc.recvfrom(fd, buffer, size, flags, address, length);
  return recvfrom_in_fiber(fd, buffer, size, flags, address, length);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (outside_of_fibers()) [[likely]]
    return libc.recvmsg(fd, message, flags);
  return recvmsg_in_fiber(fd, message, flags);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  const fiber_call call;
  if (!call || never_waits(flags) || !(limit == nullptr || is_valid(*limit)))
    return libc.recvmmsg(fd, messages, count, flags, limit);
  return call.result(receive_messages(call.home(), fd, messages, count, flags, limit));
}

}  // extern "C"
