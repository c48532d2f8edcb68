// SPDX-License-Identifier: MIT
// So many times in a period, and no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <motet/clock.hpp>
#include <motet/detail/timespan.hpp>
#include <motet/mutex.hpp>

namespace motet::inline MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_rate();
/// Sleeps, or blocks a thread without fibers.
void rest_until(clock::time_point when);

template <typename Sharing>
class basic_rate_limiter {
 public:
  /// `count` acquisitions in each `period`, evenly spread; after a pause up to `burst` at once.
  /// Throws: std::invalid_argument if one of them is 0.
  /// Source: the generic cell rate algorithm, ITU-T I.371, as virtual scheduling.
  basic_rate_limiter(std::size_t count, timespan period, std::size_t burst = 1) : burst_(burst) {
    if (count == 0 || period.length <= clock::duration::zero() || burst == 0) refuse_rate();
    const auto parts = static_cast<clock::rep>(count);
    interval_ = std::max(clock::duration(1), (period.length + clock::duration(parts - 1)) / parts);
  }

  /// Waits until `cost` more fit into the rate; those who came before are served first. What is
  /// interrupted takes nothing.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; std::invalid_argument if `cost` is 0 or more than the
  ///         burst.
  void acquire(std::size_t cost = 1) {
    check(cost);
    const std::lock_guard turn(turn_);
    rest_until(end_of(cost, clock::now()) - interval_ * burst());
    spoken_for_ = end_of(cost, clock::now());
  }

  /// Takes `cost` if that needs no waiting.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `cost` is 0 or more than the burst.
  bool try_acquire(std::size_t cost = 1) {
    check(cost);
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return false;
    const clock::time_point now = clock::now();
    const clock::time_point after = end_of(cost, now);
    if (after - interval_ * burst() > now) return false;
    spoken_for_ = after;
    return true;
  }

 private:
  void check(std::size_t cost) const {
    if (cost == 0 || cost > burst_) refuse_rate();
  }
  clock::rep burst() const noexcept { return static_cast<clock::rep>(burst_); }
  clock::time_point end_of(std::size_t cost, clock::time_point now) const noexcept {
    return std::max(spoken_for_, now) + interval_ * static_cast<clock::rep>(cost);
  }

  basic_mutex<Sharing> turn_;
  const std::size_t burst_;
  clock::duration interval_{};
  clock::time_point spoken_for_{};  // until then everything before the burst is
};

}  // namespace detail

/// For fibers and threads.
using rate_limiter = detail::basic_rate_limiter<detail::any_thread>;

namespace local {
/// For the fibers of one thread.
using rate_limiter = detail::basic_rate_limiter<detail::one_thread>;
}  // namespace local

}  // namespace motet::inline MOTET_ABI
