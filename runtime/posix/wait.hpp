// SPDX-License-Identifier: MIT
// How a fiber waits in a call of the C library: without an exception, within the time limit that
// the program has given the socket, and until an interruption.
#pragma once

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <motet/base/clock.hpp>

#include "base/is_ready.hpp"
#include "core/in_flight.hpp"
#include "core/thread_state.hpp"
#include "posix/signal_watch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline constexpr clock::time_point no_limit = clock::time_point::max();

/// Returns: when a call on `fd` that begins to wait now must give up, by SO_RCVTIMEO or
///          SO_SNDTIMEO, whichever `option` is.
/// Source: socket(7).
clock::time_point time_limit_of(thread_state& home, int fd, int option) noexcept;

/// Returns: what a handler does to a call that the kernel restarts only without a time limit, such
///          as one on a socket.
constexpr on_signal effect_with(clock::time_point due) noexcept {
  return due == no_limit ? on_signal::restart : on_signal::fail;
}

/// Performs an operation, but fails instead of waiting while an interruption is pending, which
/// stays so.
/// Returns: its result; -ETIME if `due` has passed; -EINTR; for an interruption, before anything
///          happened, minus its error: ECANCELED or that of posix::deadline_as.
std::int32_t perform(thread_state& home, operation& op, const char* call, const signal_start& start,
                     clock::time_point due = no_limit) noexcept;

/// The same for an operation that will hardly wait: it begins though an interruption is pending.
std::int32_t perform_ready(thread_state& home, operation& op, const char* call,
                           const signal_start& start, clock::time_point due = no_limit) noexcept;

/// Waits until poll(2) would report one of `events`.
/// Returns: 0, or as perform().
std::int32_t await_ready(thread_state& home, int fd, short events, const char* call,
                         const signal_start& start, clock::time_point due = no_limit) noexcept;

/// Waits until the instant.
/// Returns: 0, -EINTR, or minus the error of an interruption.
std::int32_t await_time(thread_state& home, clock::time_point due,
                        const signal_start& start) noexcept;

/// Returns: the error of a call that must not wait because an interruption is pending, once every
///          runnable fiber has had its turn; 0 if none is.
int pending_error(thread_state& home) noexcept;

/// Returns: the error of a call that the fiber's pending interruption has ended.
int interruption_error(thread_state& home) noexcept;

/// Whether a call of recv(2) or its like with these flags never waits.
constexpr bool never_waits(int flags) noexcept {
  return (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE)) != 0;
}
/// In the frame of a call on a descriptor, which another fiber may close while the call waits: the
/// number may be another file's afterwards.
class noted_use {
 public:
  noted_use(thread_state& home, int fd) noexcept : use_(fd) { home.calls.note_use(use_); }
  noted_use(const noted_use&) = delete;
  noted_use& operator=(const noted_use&) = delete;
  ~noted_use() { use_.unlink(); }
  bool closed() const noexcept { return use_.closed; }

 private:
  descriptor_use use_;
};

/// Returns: whether it is a file on a disk, whose calls are always the C library's. Sockets, pipes
///          and terminals, which have no position, are recognised soonest.
bool is_file(int fd) noexcept;
/// Returns: whether poll(2) reports the end of a connection. Something in the error queue is none.
bool has_hung_up(int fd) noexcept;
/// Returns: the time span of an argument, which may be more than a clock can represent.
constexpr clock::duration span_of(const timespec& span) noexcept {
  using namespace std::chrono;
  constexpr auto most = duration_cast<seconds>(clock::duration::max()).count() - 1;
  return seconds(std::min<std::time_t>(span.tv_sec, most)) + nanoseconds(span.tv_nsec);
}

/// Returns: whether the kernel accepts the time span.
constexpr bool is_valid(const timespec& span) noexcept {
  return span.tv_sec >= 0 && span.tv_nsec >= 0 && span.tv_nsec < 1'000'000'000;
}
/// Returns: the time that remains until `due`; 0 if that has passed.
timespec span_until(thread_state& home, clock::time_point due) noexcept;

/// Returns: whether a limit of a call is one that due_at() knows.
inline bool is_usual_limit(clockid_t id, const timespec* limit) noexcept {
  return limit != nullptr && is_valid(*limit) && (id == CLOCK_REALTIME || id == CLOCK_MONOTONIC);
}
/// Returns: when a clock will show that time.
clock::time_point due_at(thread_state& home, clockid_t id, const timespec& limit) noexcept;

/// Returns: an option of SOL_SOCKET that is an int; -1 if it is no socket.
int socket_option(int fd, int option) noexcept;
inline bool is_socket(int fd) noexcept {
  return socket_option(fd, SO_TYPE) >= 0;
}
/// Returns: whether the program has made the descriptor non-blocking.
bool is_nonblocking(int fd) noexcept;

/// Sets errno. Returns: -1.
int fail(int error) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
