// SPDX-License-Identifier: MIT
// See motet/io/splice_verbs.hpp. A ring has a splice, a tee and a waitid, too, but gives
// each splice and tee to a kernel thread, which costs more than the call on a pipe that is ready.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <motet/io/splice_verbs.hpp>

#include "base/faults.hpp"
#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"
#include "base/verb_table.hpp"
#include "core/mail/remote_wait.hpp"
#include "core/thread_state.hpp"
#include "io/exact_io.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

/// Returns: 0, or -EINVAL for a socket that would have the thread wait, whatever splice(2) is told.
std::int32_t check_mode(int descriptor, const struct stat& attributes) noexcept {
  if (!S_ISSOCK(attributes.st_mode)) return 0;
  return (sys::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0 ? 0 : -EINVAL;
}

bool is_ready(int descriptor, short events) noexcept {
  pollfd query{descriptor, events, 0};
  return sys::poll(&query, 1, 0) > 0 && (query.revents & events) != 0;
}

bool would_wait(int descriptor, short events) noexcept {
  pollfd query{descriptor, events, 0};
  return sys::poll(&query, 1, 0) == 0;
}

/// Waits for the end on which a call between `source` and `target` was blocked.
/// Returns: 0 or minus an errno value.
std::int32_t await_ends(descriptor_guard& source, descriptor_guard& target, vain_waits& waits) {
  operation op;
  op.kind = verb::wait_fd;
  const bool empty = !is_ready(source.get(), POLLIN);
  op.fd = (empty ? source : target).get();
  op.flags = empty ? POLLIN : POLLOUT;
  descriptor_guard& idle_end = empty ? target : source;
  idle_end.waits_for(&op);
  const std::int32_t result = perform_now(op, "splice");
  idle_end.waits_for(nullptr);
  if (result >= 0 && (result & op.flags) == 0) {
    remote_wait pause("the error queue of a socket", op.fd);  // an interruption is thrown later
    pause.await_until(here().time.after(waits.next_pause()));
  }
  return std::min(result, 0);
}

/// Calls `move`, which returns -EAGAIN while an end is not ready, until it does something else, or
/// a fiber has closed one of the ends.
template <typename Move>
std::int32_t move_between(descriptor_guard& source, descriptor_guard& target, Move move) {
  for (vain_waits waits;;) {
    if (refused_by_pending()) return -ECANCELED;
    here().checkpoint();
    if (source.closed() || target.closed()) return -EBADF;
    const auto result = static_cast<std::int32_t>(move());
    if (result == -EINTR) continue;
    if (result != -EAGAIN) return result;
    if (source.closed() || target.closed()) return -EBADF;  // while `move` waited
    if (const std::int32_t error = await_ends(source, target, waits); error != 0) return error;
  }
}

bool is_stream(const struct stat& attributes) noexcept {
  return S_ISFIFO(attributes.st_mode) || S_ISSOCK(attributes.st_mode);
}

std::int32_t splice_bytes(int source_fd, int target_fd, std::size_t size, unsigned flags) {
  struct stat source{};
  struct stat target{};
  if (::fstat(source_fd, &source) != 0 || ::fstat(target_fd, &target) != 0) return -errno;
  for (const std::int32_t error : {check_mode(source_fd, source), check_mode(target_fd, target)}) {
    if (error != 0) return error;
  }
  descriptor_guard input(source_fd);
  descriptor_guard output(target_fd);
  const bool direct = is_stream(source) && is_stream(target);
  operation op;
  op.kind = verb::splice;
  op.fd = source_fd;
  op.target = target_fd;
  op.length = static_cast<std::uint32_t>(std::min(size, most_bytes));
  op.flags = static_cast<int>(flags | SPLICE_F_NONBLOCK);
  return move_between(input, output, [&] {
    if (direct) return faults::call("splice", row_of(verb::splice).call, op, false);
    if ((S_ISCHR(source.st_mode) && would_wait(source_fd, POLLIN)) ||
        (S_ISCHR(target.st_mode) && would_wait(target_fd, POLLOUT))) {
      return -EAGAIN;  // a terminal would block the plain thread, whatever splice(2) is told
    }
    output.waits_for(&op);
    const std::int32_t result = perform_now(op, "splice");
    output.waits_for(nullptr);
    return result;
  });
}

std::int32_t tee_bytes(int source, int target, std::size_t size) {
  descriptor_guard input(source);
  descriptor_guard output(target);
  return move_between(input, output, [&]() -> ssize_t {
    const sigpipe_guard guard;
    const ssize_t count = faults::call("tee", sys::tee, source, target, std::min(size, most_bytes),
                                       SPLICE_F_NONBLOCK);
    return count < 0 ? -errno : count;
  });
}

std::int32_t wait_for_process(int pidfd, int options, siginfo_t& info) {
  for (;;) {
    if (refused_by_pending()) return -ECANCELED;
    info.si_pid = 0;
    const auto number = static_cast<id_t>(pidfd);
    if (sys::waitid(P_PIDFD, number, &info, options | WNOHANG) != 0) return -errno;
    if (info.si_pid != 0) return 0;
    operation op;
    op.kind = verb::wait_fd;
    op.fd = pidfd;
    op.flags = POLLIN;
    if (const std::int32_t error = perform_now(op, "waitid"); error < 0) return error;
  }
}

}}  // namespace detail

namespace io {

std::size_t splice(int source, int target, std::size_t size, unsigned flags) {
  return detail::check_result(detail::splice_bytes(source, target, size, flags), "splice", source);
}

std::size_t splice(int source, int target, std::size_t size, unsigned flags,
                   std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return detail::splice_bytes(source, target, size, flags); });
}

std::size_t tee(int source, int target, std::size_t size) {
  return detail::check_result(detail::tee_bytes(source, target, size), "tee", source);
}

std::size_t tee(int source, int target, std::size_t size, std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return detail::tee_bytes(source, target, size); });
}

siginfo_t waitid(int pidfd, int options) {
  siginfo_t info{};
  detail::check_result(detail::wait_for_process(pidfd, options, info), "waitid", pidfd);
  return info;
}

siginfo_t waitid(int pidfd, int options, std::error_code& error) noexcept {
  siginfo_t info{};
  detail::quietly(error, [&] { return detail::wait_for_process(pidfd, options, info); });
  return info;
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
