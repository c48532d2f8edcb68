// SPDX-License-Identifier: MIT
// Whether a thread counts what it does, for stats(), and where. The thread asks on() before each
// number: so long as nobody wants the numbers it pays that branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>

#include "core/counting/queue_delay.hpp"
#include "core/counting/stack_census.hpp"
#include "core/counting/thread_counters.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

class counting {
 public:
  /// `counters`: the thread's, in the thread registry.
  explicit counting(thread_counters& counters) noexcept : numbers_(counters) {}

  bool on() const noexcept { return enabled_; }
  thread_counters& numbers() const noexcept { return numbers_; }
  /// `countdown` switches are to pass until the next look.
  /// Returns: `countdown`.
  int from(int countdown) noexcept { return counted_from_ = countdown; }

  // Requires on(), as does tell().
  void before_sleep() noexcept {
    delay_.queue_is_empty(turns(), numbers_);
    numbers_.sleeps.add(1);
    asleep_from_ = ticks();
  }
  void after_sleep() noexcept { numbers_.ticks_asleep.add(ticks() - asleep_from_); }
  /// Returns: whether to measure the stack of the fiber that begins now.
  bool samples_stack() noexcept { return stack_sampling_.next(); }
  /// Called when a fiber goes on as another one, on the same stack.
  void note_reuse() noexcept { ++reuses_; }
  std::uint64_t reuses() const noexcept { return reuses_; }
  /// In a forked child: resets the measurement.
  void start_over() noexcept { delay_ = {}; }

 private:
  friend void begin_to_count(thread_state& thread) noexcept;
  friend void tell(thread_state& thread, std::size_t fresh) noexcept;

  /// Returns: the switches to fibers that had overtaken no others.
  std::uint64_t turns() const noexcept { return numbers_.switches.get() - overtakings_; }

  bool enabled_ = false;
  thread_counters& numbers_;
  std::uint64_t overtakings_ = 0;  // as of the last look
  queue_delay delay_;
  int counted_from_ = 0;  // where the countdown was when its switches were last counted
  std::uint64_t asleep_from_ = 0;
  stack_sampling stack_sampling_;
  std::uint64_t reuses_ = 0;
};

/// From here on `thread`, which is this thread's, counts.
void begin_to_count(thread_state& thread) noexcept;
/// Brings what is as of the last look up to date. So many of the runnable fibers, the last ones,
/// have become runnable just now: `fresh`.
[[gnu::noinline]] void tell(thread_state& thread, std::size_t fresh = 1) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
