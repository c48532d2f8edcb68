// SPDX-License-Identifier: MIT
// What the stall monitor sees of a thread, and how long it has seen the same.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/detail/core/control_block.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Any switch changes one of these: the countdown falls with each, and when it begins anew there
/// has been a look at the inbox, or a poll.
struct progress {
  control_block* fiber = nullptr;
  int until_look = 0;
  std::size_t switches = 0;
  std::uint64_t polled_at = 0;

  bool operator==(const progress&) const = default;
};

/// Returns: std::nullopt if the thread runs no fiber: it is idle, or in a poll or a
///          switch.
std::optional<progress> progress_of(const thread_state& thread) noexcept;

/// Returns: the thread's state in proc(5), such as 'R' for runnable and 'S' for asleep; '?' if it
/// is
///          not known.
char state_of(pid_t thread) noexcept;

class stall_timer {
 public:
  using clock = std::chrono::steady_clock;

  /// Records an observation of that thread at `time`.
  /// Returns: whether to report a stall: a fiber has occupied the thread for `limit`, and this was
  ///          not reported yet; and again each time that the duration has doubled.
  bool note(const std::optional<progress>& observation, pid_t thread, clock::time_point time,
            clock::duration limit) noexcept;
  /// Excludes a span without observations, in which perhaps nothing ran.
  void skip(clock::duration time) noexcept { start_ += time; }
  clock::duration held(clock::time_point time) const noexcept { return time - start_; }
  /// After note() has returned true: whether that was for the first time.
  bool is_new() const noexcept { return times_said_ == 1; }

 private:
  std::optional<progress> observation_;
  clock::time_point start_;
  std::chrono::nanoseconds processor_time_{};  // the thread's processor time until then
  clock::duration say_at_{};
  unsigned times_said_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
