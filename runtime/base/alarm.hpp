// SPDX-License-Identifier: MIT
// A timerfd that goes off at an instant of the monotonic clock. Source: timerfd_create(2).
#pragma once

#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <motet/base/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// time_point::max() disarms the timer, as 0 would; an instant in the past fires at once.
inline void set_alarm(int timer, clock::time_point due) noexcept {
  itimerspec setting{};
  if (due != clock::time_point::max()) {
    const auto since_boot = std::max(due.time_since_epoch(), clock::duration(1));
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    setting.it_value.tv_sec = whole.count();
    setting.it_value.tv_nsec = std::chrono::nanoseconds(since_boot - whole).count();
  }
  ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, nullptr);
}

/// Now.
inline void set_off(int timer) noexcept {
  set_alarm(timer, clock::time_point::min());
}

}}}  // namespace motet::MOTET_ABI::detail
