// SPDX-License-Identifier: MIT
// The time of a thread: its clock and its timers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/detail/core/timer.hpp>
#include <motet/runtime/backend.hpp>
#include <motet/runtime/options.hpp>

#include "base/saturating_time.hpp"
#include "core/time/timer_queue.hpp"
#include "core/time/timer_slack.hpp"
#include "platform/tick_clock.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class timers {
 public:
  /// Throws: std::bad_alloc.
  timers(backend& kernel, const options& settings)
      : kernel_(&kernel), virtual_time_(kernel.virtual_time()), slack_(settings.timer_slack) {}

  /// Returns: the present instant, never earlier than the true one.
  clock::time_point now() noexcept {
    return virtual_time_ ? kernel_->now() : tick_clock_.now([this] { return kernel_->now(); });
  }
  /// Returns: the same, read from the clock now.
  clock::time_point read_clock() noexcept {
    return tick_clock_.read([this] { return kernel_->now(); });
  }
  /// Whether time is the backend's own.
  bool virtual_time() const noexcept { return virtual_time_; }

  bool empty() const noexcept { return queue_.empty(); }
  std::size_t size() const noexcept { return queue_.size(); }
  timer* first() const noexcept { return queue_.first(); }
  template <typename F>
  void each(F f) const {
    queue_.each(f);
  }

  /// Returns: now plus `span`, or the maximum if that is not representable.
  clock::time_point after(clock::duration span) noexcept { return deadline_after(now(), span); }

  /// reserve() must have made room.
  void arm(timer& alarm) noexcept {
    queue_.push(alarm);
    alarm.fiber->home->add_pending(*alarm.fiber);
  }
  void disarm(timer& alarm) noexcept {
    if (!alarm.armed()) return;
    queue_.remove(alarm);
    alarm.fiber->home->remove_pending(*alarm.fiber);
  }
  /// Moves an armed timer to where its changed `due` belongs.
  void rearm(timer& alarm) noexcept { queue_.update(alarm); }
  /// Fires all that are due at `present`. Firing makes fibers runnable and arms nothing, so a fiber
  /// that sleeps again and again for no time cannot hold this loop.
  /// Before each, calls `note(timer)` if it is `noted`.
  template <typename F>
  void fire_due(clock::time_point present, bool noted, F note) noexcept {
    for (timer* next = first(); next != nullptr && next->due <= present; next = first()) {
      if (noted) [[unlikely]]
        note(*next);
      disarm(*next);
      next->fire(*next);
    }
  }
  /// Returns: until when a thread may sleep with a timer armed, and until `limit` at the most;
  ///          time_point::min() if a timer is due.
  clock::time_point end_of_sleep(clock::time_point limit) noexcept {
    const clock::time_point due = first()->due;
    if (virtual_time_ || due > limit) return std::min(due, limit);
    const clock::time_point present = now();
    if (due <= present) return clock::time_point::min();
    return std::min(std::max(due, present + slack_.before(*first(), present)), limit);
  }

  /// Makes room for `count` timers, so that arm() need not.
  /// Throws: std::bad_alloc.
  void reserve(std::size_t count) {
    queue_.reserve(reservations_ + count);
    reservations_ += count;
  }
  void unreserve(std::size_t fewer = 1) noexcept { reservations_ -= fewer; }
  std::size_t reserved() const noexcept { return reservations_; }

  /// A timer that fires so long after its time counts as late: more than 1 ms after its slack.
  bool is_late(clock::duration span) const noexcept {
    return span > slack_.most() + std::chrono::milliseconds(1);
  }
  /// Each fiber has room for its sleep, the grace of its handlers, and terminate().
  static constexpr std::size_t of_a_fiber = 3;

  /// In a forked child: the timers of `caller` remain, and `capacity` is the number of them
  /// that it can have.
  void start_over(backend& kernel, const control_block& caller, std::size_t capacity) noexcept {
    kernel_ = &kernel;
    queue_.retain_only(caller);
    reservations_ = capacity;
  }

 private:
  backend* kernel_;
  const bool virtual_time_;
  tick_clock tick_clock_;
  timer_slack slack_;
  timer_queue queue_;
  std::size_t reservations_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
