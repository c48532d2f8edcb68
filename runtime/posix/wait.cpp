// SPDX-License-Identifier: MIT
// See posix/wait.hpp.
#include "posix/wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/is_disk.hpp"
#include "base/system_calls.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/time/park_until.hpp"
#include "posix/c_state.hpp"
#include "posix/refusals.hpp"
#include "posix/sections.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Of a scope with a deadline; one that a std::stop_token ends has a flag.
bool is_time_limit(const effective_interruption& cause) noexcept {
  return cause.kind == interruption_kind::scope && cause.source->asked_remotely == nullptr;
}

/// A terminal with VMIN 0 has a limit for reads. Source: termios(3).
clock::time_point time_limit_of_terminal(thread_state& home, int fd) noexcept {
  termios mode{};
  const bool reads_lines = ::tcgetattr(fd, &mode) != 0 || (mode.c_lflag & ICANON) != 0;
  if (reads_lines || mode.c_cc[VMIN] != 0) return no_limit;
  return home.time.after(std::chrono::milliseconds(100) * mode.c_cc[VTIME]);
}

}  // namespace

int interruption_error(thread_state& home) noexcept {
  const effective_interruption cause = effective_interruption_of(home.running());
  if (cause.kind == interruption_kind::scope) cause.source->ended_call = true;
  return is_time_limit(cause) ? deadline_error() : ECANCELED;
}

int pending_error(thread_state& home) noexcept {
  end_passed_limits(home);
  if (!home.must_throw()) {
    forget_refusals();
    return 0;
  }
  home.snooze();  // a library that retries must not starve the other fibers
  return count_refusal(home, interruption_error(home));
}

clock::time_point time_limit_of(thread_state& home, int fd, int option) noexcept {
  timeval span{};
  socklen_t size = sizeof span;
  if (::getsockopt(fd, SOL_SOCKET, option, &span, &size) != 0)
    return option == SO_RCVTIMEO ? time_limit_of_terminal(home, fd) : no_limit;
  if (span.tv_sec == 0 && span.tv_usec == 0) return no_limit;
  return home.time.after(span_of({span.tv_sec, span.tv_usec * 1'000}));
}

std::int32_t perform(thread_state& home, operation& op, const char* call, const signal_start& start,
                     clock::time_point due) noexcept {
  if (const int error = pending_error(home); error != 0) return -error;
  return perform_ready(home, op, call, start, due);
}

std::int32_t perform_ready(thread_state& home, operation& op, const char* call,
                           const signal_start& start, clock::time_point due) noexcept {
  const c_state state;
  const signal_watch watch(start, op);
  if (start.passed()) return -EINTR;
  const std::int32_t result = home.calls.perform_until(op, call, due);
  if (watch.ended() && (result == -ECANCELED || result == -ETIME)) return -EINTR;
  return result == -ECANCELED ? -interruption_error(home) : result;
}

std::int32_t await_ready(thread_state& home, int fd, short events, const char* call,
                         const signal_start& start, clock::time_point due) noexcept {
  operation op;
  op.kind = verb::wait_fd;
  op.fd = fd;
  op.flags = events;
  const std::int32_t result = perform(home, op, call, start, due);
  return result < 0 ? result : 0;
}

std::int32_t await_time(thread_state& home, clock::time_point due,
                        const signal_start& start) noexcept {
  if (const int error = pending_error(home); error != 0) return -error;
  wait_record wait("sleep");
  const c_state state;
  const signal_watch watch(start, wait);
  if (start.passed()) return -EINTR;
  const wake_reason reason = park_until(home, wait, due);
  if (reason != wake_reason::time) return -interruption_error(home);
  return watch.ended() ? -EINTR : 0;
}

bool is_file(int fd) noexcept {
  return ::lseek(fd, 0, SEEK_CUR) >= 0 && is_disk(fd);
}

bool has_hung_up(int fd) noexcept {
  pollfd look{fd, 0, 0};
  return sys::poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLNVAL)) != 0;
}

timespec span_until(thread_state& home, clock::time_point due) noexcept {
  const auto rest = std::max(clock::duration(0), due - home.time.now());
  const auto whole = std::chrono::floor<std::chrono::seconds>(rest);
  return {whole.count(), (rest - whole).count()};
}

clock::time_point due_at(thread_state& home, clockid_t id, const timespec& limit) noexcept {
  timespec now{};
  ::clock_gettime(id, &now);
  return home.time.after(span_of(limit) - span_of(now));
}

int socket_option(int fd, int option) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_nonblocking(int fd) noexcept {
  return (sys::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

int fail(int error) noexcept {
  errno = error;
  return -1;
}

}}}  // namespace motet::MOTET_ABI::detail
