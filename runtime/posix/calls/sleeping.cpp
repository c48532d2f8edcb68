// SPDX-License-Identifier: MIT
// sleep(3), nanosleep(2) and their relatives. A sleep that an interruption ends fails with its
// error; the time that remains is reported as after a signal.
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Returns: 0, EINTR, or the error of an interruption; then sets `rest`, unless it is null.
int sleep_for(thread_state& home, clock::duration span, timespec* rest,
              const signal_start& start = on_signal::fail) noexcept {
  if (span <= clock::duration(0)) {
    home.snooze();
    return 0;
  }
  const clock::time_point due = home.time.after(span);
  const std::int32_t result = await_time(home, due, start);
  if (result == 0) return 0;
  if (rest != nullptr) *rest = span_until(home, due);
  return -result;
}

clock::duration time_of(clockid_t id) noexcept {
  timespec reading{};
  ::clock_gettime(id, &reading);
  return span_of(reading);
}

/// A clock that can be set is looked at again when the difference has passed.
int sleep_until(thread_state& home, clockid_t id, clock::duration due) noexcept {
  const signal_start start(on_signal::fail);
  for (;;) {
    const clock::duration rest = due - time_of(id);
    if (rest <= clock::duration(0)) return 0;
    constexpr clock::duration longest = std::chrono::seconds(1);
    const clock::duration span = id == CLOCK_MONOTONIC ? rest : std::min(rest, longest);
    if (const int error = sleep_for(home, span, nullptr, start); error != 0) return error;
  }
}

/// Clocks of processor time do not go on while the fiber sleeps.
bool is_clock_of_time(clockid_t id) noexcept {
  return id == CLOCK_REALTIME || id == CLOCK_MONOTONIC || id == CLOCK_BOOTTIME || id == CLOCK_TAI;
}

bool sleeps_in_fiber(const fiber_call& call, const timespec* span) noexcept {
  return span != nullptr && is_valid(*span) && call.may_wait();
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int nanosleep(const timespec* span, timespec* rest) {
  const fiber_call call;
  if (!sleeps_in_fiber(call, span)) return libc.nanosleep(span, rest);
  const int error = sleep_for(call.home(), span_of(*span), rest);
  return error == 0 ? 0 : fail(error);
}

int clock_nanosleep(clockid_t id, int flags, const timespec* span, timespec* rest) {
  const fiber_call call;
  if (!is_clock_of_time(id) || !sleeps_in_fiber(call, span))
    return libc.clock_nanosleep(id, flags, span, rest);
  return (flags & TIMER_ABSTIME) != 0 ? sleep_until(call.home(), id, span_of(*span))
                                      : sleep_for(call.home(), span_of(*span), rest);
}

int thrd_sleep(const timespec* span, timespec* rest) {
  const fiber_call call;
  if (!sleeps_in_fiber(call, span)) return libc.thrd_sleep(span, rest);
  const int error = sleep_for(call.home(), span_of(*span), rest);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

unsigned sleep(unsigned seconds) {
  const fiber_call call;
  const timespec span{static_cast<std::time_t>(seconds), 0};
  if (!sleeps_in_fiber(call, &span)) return libc.sleep(seconds);
  timespec rest{};
  const int error = sleep_for(call.home(), span_of(span), &rest);
  if (error == EINTR) errno = EINTR;
  if (error == EBADF) return 0;                               // the caller retries
  const bool rounds_up = error != EINTR && rest.tv_nsec > 0;  // an interrupted sleep is never over
  return static_cast<unsigned>(rest.tv_sec + (rounds_up ? 1 : 0));
}

int usleep(useconds_t microseconds) {
  const fiber_call call;
  const timespec span{microseconds / 1'000'000, microseconds % 1'000'000 * 1'000L};
  if (!sleeps_in_fiber(call, &span)) return libc.usleep(microseconds);
  const int error = sleep_for(call.home(), span_of(span), nullptr);
  return error == 0 ? 0 : fail(error);
}

}  // extern "C"
