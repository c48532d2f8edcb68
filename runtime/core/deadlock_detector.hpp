// SPDX-License-Identifier: MIT
// What a thread does when no fiber is runnable and nothing that pends can wake a fiber.
#pragma once

#include <motet/base/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// The name of the thread that looks for stalls, while it looks: so long it wakes no fiber.
inline constexpr char stall_monitor_name[] = "motet watch";

class deadlock_detector {
 public:
  explicit deadlock_detector(thread_state& thread) noexcept : thread_(thread) {}
  deadlock_detector(const deadlock_detector&) = delete;
  deadlock_detector& operator=(const deadlock_detector&) = delete;

  /// Ends the wait of the main fiber if it is one for just this; otherwise looks whether the fibers
  /// wait for one another, and says so.
  /// Returns: whether a fiber has been made runnable; if not, the thread may as well sleep.
  bool end_idle() noexcept;
  /// Returns: when the thread must look again, though nothing wakes it.
  clock::time_point look_again_at() const noexcept { return idle_until_; }
  /// Whether the fibers wait for one another, as far as is known.
  bool stuck() const noexcept { return stuck_; }
  /// After a sleep: another thread may have helped.
  void look_whether_stuck() noexcept;
  /// Called in a forked child.
  void start_over() noexcept { report_at_ = idle_until_ = clock::time_point::max(); }

 private:
  bool end_stuck(clock::time_point present);
  bool raise_deadlock();
  bool report_deadlock();

  thread_state& thread_;
  clock::time_point report_at_ = clock::time_point::max();
  clock::time_point idle_until_ = clock::time_point::max();
  clock::time_point look_for_others_at_ = clock::time_point::min();
  clock::duration between_looks_{};
  bool reported_ = false;
  bool stuck_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
