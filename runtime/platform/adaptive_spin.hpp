// SPDX-License-Identifier: MIT
// To wake a sleeping thread takes longer than many an answer of another thread. So if mail has
// lately come soon, a thread waits awake for the next mail: not for long, not if more threads are
// awake than there are processors, and not while other threads need its processor. If the thread
// that answers has the same processor, the wait begins by yielding it.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "platform/cores.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class adaptive_spin {
 public:
  /// Sets how long a wait may last at the most. The first wait has the length 0.
  void set_length(std::chrono::nanoseconds length) noexcept {
    worth_ = ticks_in(length);
    slice_ = ticks_in(time_slice);
    cores_ = usable_cores();
  }

  bool worthwhile() const noexcept { return length_ > 0; }
  /// Whether a thread may wait awake without offering its processor to others.
  bool may_stay() const noexcept {
    return worth_ > 0 && cores_ > 1 && awake_threads.load(std::memory_order_relaxed) <= cores_;
  }

  /// Waits until `filled()`, which is called often, or `busy()`, which is called now and then.
  /// Returns: whether one of them was true. If not, the next wait is not worthwhile.
  template <typename Filled, typename Busy>
  bool wait(Filled filled, Busy busy) noexcept {
    if (awake_threads.load(std::memory_order_relaxed) > cores_) return false;
    const std::uint64_t begin = ticks();
    for (int round = shares_processor_ ? rounds_alone : 0; ticks() - begin < length_; ++round) {
      if (round >= rounds_alone && !yield(filled)) break;
      if (looks_until(filled) || busy()) return true;
    }
    length_ = 0;
    return filled();
  }

  /// The same without offering the processor to others, and so for a few rounds only.
  template <typename Filled, typename Busy>
  void look(Filled filled, Busy busy) const noexcept {
    const std::uint64_t begin = ticks();
    for (int round = 0; round < rounds_alone && ticks() - begin < length_; ++round) {
      if (shares_processor_ || !may_stay()) return;
      if (looks_until(filled) || busy()) return;
    }
  }
  /// Waits until a short time has passed since `begin`, or until `filled()`.
  template <typename Filled>
  void pause_since(std::uint64_t begin, Filled filled) const noexcept {
    while (ticks() - begin < worth_ / short_share && !filled()) pause();
  }

  /// Called when mail has ended a sleep that began at `asleep_since`: if a wait awake would have
  /// got the mail, or nearly, the next one is worthwhile.
  void learn(std::uint64_t asleep_since) noexcept {
    const std::uint64_t time = ticks();
    if (time < crowded_until_) return;
    if (time - asleep_since < 2 * worth_) length_ = worth_;
  }

 private:
  /// Each look takes some 10 ns. After some rounds the processor is offered to other threads in
  /// between: the thread that is to answer may wait for this very processor.
  static constexpr int looks_in_a_round = 64;
  static constexpr int rounds_alone = 4;
  /// If other threads take the processor for a time slice, no wait is tried for `crowded_times` the
  /// length of one. Less proves nothing: the thread that answers takes some microseconds, and so
  /// does a hypervisor; and where there is one, a wake-up takes longest.
  static constexpr std::chrono::microseconds time_slice{200};
  static constexpr std::uint64_t short_share = 25;
  static constexpr std::uint64_t crowded_times = 100;

  template <typename Filled>
  static bool looks_until(Filled& filled) noexcept {
    for (int look = 0; look < looks_in_a_round; ++look) {
      if (filled()) return true;
      pause();
    }
    return false;
  }

  /// Returns: false if other threads need the processor.
  template <typename Filled>
  bool yield(Filled& filled) noexcept {
    const std::uint64_t begin = ticks();
    ::sched_yield();
    const std::uint64_t back = ticks();
    const bool is_crowded = back - begin >= slice_;
    if (is_crowded) crowded_until_ = back + crowded_times * worth_;
    shares_processor_ = !is_crowded && filled();
    return !is_crowded;
  }

  std::uint64_t worth_ = 0;  // in ticks
  std::uint64_t slice_ = 0;
  std::uint64_t length_ = 0;  // of the next wait, in ticks; 0: the thread sleeps at once
  std::uint64_t crowded_until_ = 0;
  bool shares_processor_ = false;  // with the thread that answers: it did so during a yield
  std::size_t cores_ = 0;
  awake_thread registration_;
};

}}}  // namespace motet::MOTET_ABI::detail
