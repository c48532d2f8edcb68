// SPDX-License-Identifier: MIT
// To wake a thread takes longer than many an answer. So where mail has lately come soon, the next
// is waited for awake: not for long, not if more threads are awake than there are processors, and
// not while others need this one.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ground/cores.hpp"
#include "ground/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class waiting_awake {
 public:
  /// Waits for so long at the most; at first for nothing.
  void set_length(std::chrono::nanoseconds length) noexcept {
    worth_ = ticks_in(length);
    cores_ = usable_cores();
  }

  bool worthwhile() const noexcept { return length_ > 0; }

  /// Until `filled()`, which is asked often, or `busy()`, which is asked now and then.
  /// Returns: whether one of them is so. If not, the next time is not worthwhile.
  template <typename Filled, typename Busy>
  bool wait(Filled filled, Busy busy) noexcept {
    if (awake_threads.load(std::memory_order_relaxed) > cores_) return false;
    const std::uint64_t from = ticks();
    for (int round = 0; ticks() - from < length_; ++round) {
      if (round >= rounds_alone && !yield_briefly()) break;
      for (int look = 0; look < looks_in_a_round; ++look) {
        if (filled()) return true;
        pause();
      }
      if (busy()) return true;
    }
    length_ = 0;
    return false;
  }

  /// Mail has ended a sleep that began then: had this waited awake, it would have got it, or
  /// nearly.
  void learn(std::uint64_t asleep_since) noexcept {
    const std::uint64_t now = ticks();
    if (now < crowded_until_) return;
    if (now - asleep_since < 2 * worth_) length_ = worth_;
  }

 private:
  /// Each look is worth some 10 ns. After some rounds the processor is offered to others in
  /// between: who is to answer may wait for this very one.
  static constexpr int looks_in_a_round = 64;
  static constexpr int rounds_alone = 4;
  /// If others take it for a large share of the time, it will not be free for so many times as
  /// long.
  static constexpr std::uint64_t large_share = 8;
  static constexpr std::uint64_t crowded_times = 100;

  bool yield_briefly() noexcept {
    const std::uint64_t from = ticks();
    ::sched_yield();
    const std::uint64_t back = ticks();
    if (back - from < worth_ / large_share) return true;
    crowded_until_ = back + crowded_times * worth_;
    return false;
  }

  std::uint64_t worth_ = 0;   // in ticks
  std::uint64_t length_ = 0;  // 0: it sleeps at once
  std::uint64_t crowded_until_ = 0;
  std::size_t cores_ = 0;
  awake_thread counted_;
};

}}}  // namespace motet::MOTET_ABI::detail
