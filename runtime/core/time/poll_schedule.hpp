// SPDX-License-Identifier: MIT
// When a thread with runnable fibers polls its backend: after a number of switches, or an amount of
// time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <motet/runtime/options.hpp>

#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class poll_schedule {
 public:
  explicit poll_schedule(const options& settings) noexcept
      : most_switches_(settings.switches_between_polls),
        ticks_between_polls_(ticks_in(settings.time_between_polls)),
        polled_at_(ticks()) {}

  /// Returns: after how many switches the inbox and the counter are to be looked at: 16, or just
  ///          when the number of switches calls for a poll.
  int countdown() noexcept {
    const std::size_t limit = most_switches() + 1;
    const std::size_t remaining = limit > switches_ ? limit - switches_ : switches_between_looks;
    look_after_ = std::min(switches_between_looks, remaining);
    return static_cast<int>(look_after_);
  }
  /// The countdown has ended.
  void looked() noexcept { switches_ += look_after_; }

  bool due() const noexcept { return switches_ > most_switches() || overdue(); }
  /// From now on only switches count, because real time must not decide.
  void ignore_time() noexcept { ticks_between_polls_ = std::numeric_limits<std::uint64_t>::max(); }
  bool overdue() const noexcept { return ticks() - polled_at_ > ticks_between_polls_; }

  void polled(std::size_t runnable) noexcept {
    polled_at_ = ticks();
    switches_ = 0;
    runnable_at_poll_ = runnable;
  }
  // Where another thread looks for progress.
  const std::size_t* switches_address() const noexcept { return &switches_; }
  const std::uint64_t* polled_at_address() const noexcept { return &polled_at_; }
  /// Whether the thread polls now: calls of the C library are the backend's.
  bool in_backend = false;
  /// Returns: the counter at the last poll.
  std::uint64_t polled_at() const noexcept { return polled_at_; }
  /// Returns: how many polls would have been due since the last one.
  double omitted_polls() const noexcept {
    return static_cast<double>(ticks() - polled_at_) / static_cast<double>(ticks_between_polls_);
  }

 private:
  static constexpr std::size_t switches_between_looks = 16;

  std::size_t most_switches() const noexcept { return std::max(most_switches_, runnable_at_poll_); }

  std::size_t switches_ = 0;  // since the last poll, as of the last look
  std::size_t look_after_ = 0;
  std::size_t runnable_at_poll_ = 0;
  const std::size_t most_switches_;
  std::uint64_t ticks_between_polls_;
  std::uint64_t polled_at_;
};

}}}  // namespace motet::MOTET_ABI::detail
