// SPDX-License-Identifier: MIT
// See heart/time/timers.hpp.
#include "heart/time/timers.hpp"

#include <algorithm>
#include <chrono>
#include <motet/detail/heart/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// To fall asleep and to wake up takes about as long, and what is due meanwhile is served at once.
/// The kernel's own waits end as late by default: prctl(2), PR_SET_TIMERSLACK.
constexpr auto shortest_sleep = std::chrono::microseconds(50);

}  // namespace

void timers::arm(timer& alarm) noexcept {
  queue_.push(alarm);
  alarm.fiber->home->pend(*alarm.fiber);
}

void timers::disarm(timer& alarm) noexcept {
  if (!alarm.armed()) return;
  queue_.remove(alarm);
  alarm.fiber->home->unpend(*alarm.fiber);
}

/// Firing makes fibers runnable and arms nothing, so a fiber that sleeps again and again for no
/// time cannot hold this loop.
void timers::fire_due(clock::time_point present) noexcept {
  for (timer* next = first(); next != nullptr && next->due <= present; next = first()) {
    disarm(*next);
    next->fire(*next);
  }
}

clock::time_point timers::end_of_sleep(clock::time_point limit) noexcept {
  const clock::time_point due = first()->due;
  if (virtual_time_ || due > limit) return std::min(due, limit);
  const clock::time_point present = now();
  return due <= present ? clock::time_point::min() : std::max(due, present + shortest_sleep);
}

}}}  // namespace motet::MOTET_ABI::detail
