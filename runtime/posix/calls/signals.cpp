// SPDX-License-Identifier: MIT
// sigwait(3), pause(2) and their relatives. A signalfd is readable while a signal of its set is
// pending.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <motet/io/fd.hpp>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/look.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Returns: the number of a signal of the set; -1 with errno EAGAIN when `due` has passed.
int take_signal(thread_state& home, const sigset_t& set, siginfo_t* info, const signal_start& start,
                clock::time_point due) noexcept {
  constexpr timespec now{};
  const fd pending(::signalfd(-1, &set, SFD_CLOEXEC));
  for (;;) {
    const int number = libc.sigtimedwait(&set, info, &now);
    if (number >= 0 || (errno != EAGAIN && errno != EINTR)) return number;
    if (!pending) return fail(EAGAIN);
    const std::int32_t error = await_ready(home, pending.get(), POLLIN, "sigwait", start, due);
    if (error != 0) return fail(error == -ETIME ? EAGAIN : -error);
  }
}

/// Waits until a handler has run.
int await_handler(thread_state& home) noexcept {
  constexpr std::chrono::hours span(1);
  const signal_start start(on_signal::fail);
  std::int32_t error = 0;
  while (error == 0) error = await_time(home, home.time.after(span), start);
  return fail(-error);
}

bool waits_in_fiber(const fiber_call& call, const sigset_t* set) noexcept {
  return set != nullptr && call.may_wait();
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  const fiber_call call;
  if (!waits_in_fiber(call, set) || !limit_allows_wait(limit))
    return libc.sigtimedwait(set, info, limit);
  return take_signal(call.home(), *set, info, on_signal::fail, due_after(call.home(), limit));
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return ::sigtimedwait(set, info, nullptr);
}

/// Unlike the others, it returns an error.
int sigwait(const sigset_t* set, int* number) {
  const fiber_call call;
  if (!waits_in_fiber(call, set)) return libc.sigwait(set, number);
  const int result = take_signal(call.home(), *set, nullptr, on_signal::go_on, no_limit);
  if (result < 0) return errno;
  *number = result;
  return 0;
}

int pause() {
  const fiber_call call;
  return call.may_wait() ? await_handler(call.home()) : libc.pause();
}

int sigsuspend(const sigset_t* mask) {
  const fiber_call call;
  if (!waits_in_fiber(call, mask)) return libc.sigsuspend(mask);
  thread_state& home = call.home();
  constexpr timespec now{};
  return look_with_mask(
      home, no_limit, [&] { return libc.ppoll(nullptr, 0, &now, mask); },
      [&](motet::clock::time_point due, const signal_start& start) {
        return await_time(home, due, start);
      });
}

}  // extern "C"
