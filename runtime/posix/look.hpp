// SPDX-License-Identifier: MIT
// Calls that report which descriptors are ready: made without waiting before and after the fiber's
// wait, so that each result is the kernel's own.
#pragma once

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "io/exact_io.hpp"
#include "posix/caller.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls `look()`, which returns like poll(2) without waiting, before and after each `await(due,
/// start)`, which returns like await_ready(); or `block()`, where a fiber cannot wait. A wait can
/// end though the look finds nothing, because backends know fewer events than the kernel: so the
/// call pauses from the second such wait on.
template <typename Look, typename Await, typename Block>
int look_until_ready(thread_state& home, clock::time_point due, Look look, Await await,
                     Block block) noexcept {
  int count = look();
  if (count != 0) return count;
  if (must_not_switch(home)) return block();
  const signal_start start(on_signal::fail);
  vain_waits pauses;
  for (unsigned vain = 0; count == 0; ++vain) {
    if (due != no_limit && home.time.now() >= due) return 0;
    std::int32_t result = 0;
    if (vain >= 2) {
      const clock::time_point next = home.time.after(pauses.next_pause());
      result = await_time(home, std::min(due, next), start);
    }
    if (result == 0) result = await(due, start);
    if (result < 0 && result != -ETIME) return fail(-result);
    count = look();
  }
  return count;
}

/// A call with a signal mask lets signals in that the thread blocks otherwise, which concerns all
/// of its fibers: so the mask is set for moments only, with waits without it in between.
template <typename Look, typename Await>
int look_with_mask(thread_state& home, clock::time_point due, Look look, Await await) noexcept {
  constexpr clock::duration longest_pause = std::chrono::milliseconds(10);
  const signal_start start(on_signal::fail);
  for (clock::duration pause = std::chrono::milliseconds(1);;
       pause = std::min(2 * pause, longest_pause)) {
    const int count = look();
    if (count != 0 || (due != no_limit && home.time.now() >= due)) return count;
    const std::int32_t result = await(std::min(due, home.time.after(pause)), start);
    if (result < 0 && result != -ETIME) return fail(-result);
  }
}

inline clock::time_point due_after(thread_state& home, int milliseconds) noexcept {
  return milliseconds < 0 ? no_limit : home.time.after(std::chrono::milliseconds(milliseconds));
}

inline clock::time_point due_after(thread_state& home, const timespec* span) noexcept {
  return span == nullptr ? no_limit : home.time.after(span_of(*span));
}

/// Whether a call with this limit may wait, and is not one that the kernel refuses.
inline bool limit_allows_wait(const timespec* span) noexcept {
  return span == nullptr || (is_valid(*span) && (span->tv_sec | span->tv_nsec) != 0);
}

}}}  // namespace motet::MOTET_ABI::detail
