// SPDX-License-Identifier: MIT
// See motet/io/splice_verbs.hpp. A ring has a splice, a tee and a waitid, too, but gives
// each splice and tee to a kernel thread, which costs more than the call on a pipe that is ready.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/io/io.hpp>
#include <motet/io/splice_verbs.hpp>
#include <motet/sync/time.hpp>

#include "base/faults.hpp"
#include "base/sigpipe.hpp"
#include "base/verb_table.hpp"
#include "core/thread_state.hpp"
#include "io/exact_io.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

/// Returns: 0, or -EINVAL for a socket that would have the thread wait, whatever splice(2) is told.
std::int32_t check_mode(int descriptor, const struct stat& found) noexcept {
  if (!S_ISSOCK(found.st_mode)) return 0;
  return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0 ? 0 : -EINVAL;
}

bool is_ready(int descriptor, short events) noexcept {
  pollfd asked{descriptor, events, 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & events) != 0;
}

bool would_wait(int descriptor, short events) noexcept {
  pollfd asked{descriptor, events, 0};
  return ::poll(&asked, 1, 0) == 0;
}

/// A socket with something in its error queue ends every wait at once, for as long as the program
/// leaves it there. An interruption is thrown afterwards.
void pause_in_vain() {
  const internal_shield safe;
  sleep_for(std::chrono::milliseconds(1));
}

/// Waits for the end on which a call between `from` and `to` was blocked.
/// Returns: 0 or minus an errno value.
std::int32_t await_ends(descriptor_guard& from, descriptor_guard& to) {
  operation op;
  op.kind = verb::wait_fd;
  const bool empty = !is_ready(from.get(), POLLIN);
  op.fd = (empty ? from : to).get();
  op.flags = empty ? POLLIN : POLLOUT;
  descriptor_guard& other = empty ? to : from;
  other.waits_for(&op);
  const std::int32_t result = perform_now(op, "splice");
  other.waits_for(nullptr);
  if (result >= 0 && (result & op.flags) == 0) pause_in_vain();
  return std::min(result, 0);
}

/// Calls `move`, which returns -EAGAIN while an end is not ready, until it does something else, or
/// a fiber has closed one of the ends.
template <typename Move>
std::int32_t move_between(descriptor_guard& from, descriptor_guard& to, Move move) {
  for (;;) {
    if (refused_by_pending()) return -ECANCELED;
    here().checkpoint();
    if (from.closed() || to.closed()) return -EBADF;
    const auto moved = static_cast<std::int32_t>(move());
    if (moved == -EINTR) continue;
    if (moved != -EAGAIN) return moved;
    if (from.closed() || to.closed()) return -EBADF;  // while `move` waited
    if (const std::int32_t error = await_ends(from, to); error != 0) return error;
  }
}

bool is_stream(const struct stat& found) noexcept {
  return S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode);
}

std::int32_t splice_bytes(int from, int to, std::size_t size, unsigned flags) {
  struct stat source{};
  struct stat target{};
  if (::fstat(from, &source) != 0 || ::fstat(to, &target) != 0) return -errno;
  for (const std::int32_t error : {check_mode(from, source), check_mode(to, target)}) {
    if (error != 0) return error;
  }
  descriptor_guard input(from);
  descriptor_guard output(to);
  const bool direct = is_stream(source) && is_stream(target);
  operation op;
  op.kind = verb::splice;
  op.fd = from;
  op.target = to;
  op.length = static_cast<std::uint32_t>(std::min(size, most_bytes));
  op.flags = static_cast<int>(flags | SPLICE_F_NONBLOCK);
  return move_between(input, output, [&] {
    if (direct) return faults::call("splice", row_of(verb::splice).call, op, false);
    if ((S_ISCHR(source.st_mode) && would_wait(from, POLLIN)) ||
        (S_ISCHR(target.st_mode) && would_wait(to, POLLOUT))) {
      return -EAGAIN;  // a terminal would block the plain thread, whatever splice(2) is told
    }
    output.waits_for(&op);
    const std::int32_t moved = perform_now(op, "splice");
    output.waits_for(nullptr);
    return moved;
  });
}

std::int32_t tee_bytes(int from, int to, std::size_t size) {
  descriptor_guard input(from);
  descriptor_guard output(to);
  return move_between(input, output, [&]() -> ssize_t {
    const sigpipe_guard guard;
    const ssize_t copied =
        faults::call("tee", ::tee, from, to, std::min(size, most_bytes), SPLICE_F_NONBLOCK);
    return copied < 0 ? -errno : copied;
  });
}

std::int32_t wait_for_process(int pidfd, int options, siginfo_t& found) {
  for (;;) {
    if (refused_by_pending()) return -ECANCELED;
    found.si_pid = 0;
    const auto number = static_cast<id_t>(pidfd);
    if (::waitid(P_PIDFD, number, &found, options | WNOHANG) != 0) return -errno;
    if (found.si_pid != 0) return 0;
    operation op;
    op.kind = verb::wait_fd;
    op.fd = pidfd;
    op.flags = POLLIN;
    if (const std::int32_t error = perform_now(op, "waitid"); error < 0) return error;
  }
}

}}  // namespace detail

namespace io {

std::size_t splice(int from, int to, std::size_t size, unsigned flags) {
  return detail::check_result(detail::splice_bytes(from, to, size, flags), "splice", from);
}

std::size_t splice(int from, int to, std::size_t size, unsigned flags,
                   std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return detail::splice_bytes(from, to, size, flags); });
}

std::size_t tee(int from, int to, std::size_t size) {
  return detail::check_result(detail::tee_bytes(from, to, size), "tee", from);
}

std::size_t tee(int from, int to, std::size_t size, std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return detail::tee_bytes(from, to, size); });
}

siginfo_t waitid(int pidfd, int options) {
  siginfo_t found{};
  detail::check_result(detail::wait_for_process(pidfd, options, found), "waitid", pidfd);
  return found;
}

siginfo_t waitid(int pidfd, int options, std::error_code& error) noexcept {
  siginfo_t found{};
  detail::quietly(error, [&] { return detail::wait_for_process(pidfd, options, found); });
  return found;
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
