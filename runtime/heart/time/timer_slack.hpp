// SPDX-License-Identifier: MIT
// How long a thread sleeps at the least although a timer is due earlier: a while for a timer alone,
// longer while sleeps of many fibers end one after another, so that they end together.
#pragma once

#include <algorithm>
#include <chrono>
#include <motet/clock.hpp>
#include <motet/detail/heart/timer.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class timer_slack {
 public:
  explicit timer_slack(std::chrono::microseconds most) noexcept : most_(most) {}

  /// Called before a sleep that `next` is to end, `ahead` from now.
  /// Returns: how long the sleep is at the least.
  clock::duration before(const timer& next, clock::duration ahead) noexcept {
    const bool another = next.fiber != last_;
    last_ = next.fiber;
    in_a_row_ = another && ahead <= close ? in_a_row_ + 1 : 0;
    if (in_a_row_ < crowd) return std::min<clock::duration>(alone, most_);
    return in_a_row_ < lasting_crowd ? std::min<clock::duration>(most_, most_ / 2 + alone) : most_;
  }

 private:
  /// To fall asleep and to wake up takes about as long, and what is due meanwhile is served at
  /// once. The kernel's own waits end as late by default: prctl(2), PR_SET_TIMERSLACK.
  static constexpr std::chrono::microseconds alone{50};
  /// Sleeps of different fibers that are no further from one another are a crowd's if there are so
  /// many in a row: a fiber that always sleeps for a moment is none, nor are a few that take turns.
  static constexpr std::chrono::microseconds close{100};
  static constexpr unsigned crowd = 8;
  static constexpr unsigned lasting_crowd = 32;

  const std::chrono::microseconds most_;
  const control_block* last_ = nullptr;  // whose timer ended the last sleep; only compared
  unsigned in_a_row_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
