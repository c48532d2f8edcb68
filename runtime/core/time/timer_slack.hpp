// SPDX-License-Identifier: MIT
// How long a thread sleeps at the least although a timer is due earlier: a while for a timer alone,
// longer while sleeps of many fibers end one after another, so that they end together.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/detail/core/timer.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class timer_slack {
 public:
  explicit timer_slack(std::chrono::microseconds limit) noexcept : limit_(limit) {}

  std::chrono::microseconds most() const noexcept { return limit_; }

  /// Called before a sleep that `next` will end.
  /// Returns: the minimum length of the sleep.
  clock::duration before(const timer& next, clock::time_point present) noexcept {
    const bool soon = present - last_at_ <= close + 2 * limit_ && next.due - present <= close;
    in_a_row_ = soon && !is_among_last(next.fiber) ? in_a_row_ + 1 : 0;
    last_at_ = present;
    last_[next_index_++ % last_.size()] = next.fiber;
    if (in_a_row_ < last_.size()) return std::min<clock::duration>(alone, limit_);
    return in_a_row_ < lasting_crowd ? std::min<clock::duration>(limit_, limit_ / 2 + alone)
                                     : limit_;
  }

 private:
  /// To fall asleep and to wake up takes about as long, and what is due meanwhile is served at
  /// once. The kernel's own waits end as late by default: prctl(2), PR_SET_TIMERSLACK.
  static constexpr std::chrono::microseconds alone{50};
  /// Timers in a row that are no further ahead make a crowd, if there are enough of them.
  static constexpr std::chrono::microseconds close{100};
  static constexpr unsigned lasting_crowd = 32;

  bool is_among_last(const control_block* fiber) const noexcept {
    return std::find(last_.begin(), last_.end(), fiber) != last_.end();
  }

  const std::chrono::microseconds limit_;
  /// The fibers whose timers ended the latest sleeps: one fiber that sleeps often is no crowd, nor
  /// are a few that alternate. The pointers are only compared, because a fiber may have ended.
  std::array<const control_block*, 8> last_{};
  std::size_t next_index_ = 0;
  clock::time_point last_at_{};
  unsigned in_a_row_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
