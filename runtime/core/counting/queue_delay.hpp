// SPDX-License-Identifier: MIT
// How long a fiber that has become runnable waits for its turn, of one in 64. No fiber is marked:
// the queue is first in, first out, so the fiber that stands behind n others runs after n switches,
// which are counted anyway; those to fibers that overtake are left out. Looked at only where the
// switches are counted; between two looks the switches are taken to be of one length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/counting/thread_counters.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class queue_delay {
 public:
  /// `switches`: of the thread so far. `runnable`: the length of the queue; its last `fresh` fibers
  /// became runnable since the previous look, and the delay of one of them is measured next.
  void look(std::uint64_t switches, std::size_t runnable, std::size_t fresh,
            thread_counters& counters) noexcept {
    if (switches < begun_at_) return;  // the switch at which it began went to one that overtook
    const std::uint64_t distance = switches - begun_at_;
    if (measures_) {
      if (distance >= target_distance_) end(distance, counters);
    } else if (distance >= one_in && runnable > 0) {
      begun_at_ = switches;
      target_distance_ = runnable - round_++ % std::clamp<std::size_t>(fresh, 1, runnable);
      ticks_ = ticks();
      measures_ = true;
    }
  }
  /// No fiber is runnable any more: what has been waited for has run, and the thread may sleep.
  void queue_is_empty(std::uint64_t switches, thread_counters& counters) noexcept {
    if (measures_) end(std::max(switches, begun_at_) - begun_at_, counters);
  }

 private:
  static constexpr std::uint64_t one_in = 64;

  void end(std::uint64_t distance, thread_counters& counters) noexcept;

  std::uint64_t begun_at_ = 0;         // in switches
  std::uint64_t target_distance_ = 0;  // to go then
  std::uint64_t ticks_ = 0;            // then
  std::size_t round_ = 0;
  bool measures_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
