// SPDX-License-Identifier: MIT
// One timer; timer_queue keeps them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <motet/base/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct control_block;

/// A timer; lives in the frame of the fiber that it concerns.
struct timer {
  clock::time_point due{};
  control_block* fiber = nullptr;
  void (*fire)(timer&) noexcept = nullptr;
  std::uint64_t order = 0;
  std::size_t index = nowhere;
  bool young = false;  // is in the heap of the newest timers

  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  bool armed() const noexcept { return index != nowhere; }
};

}}}  // namespace motet::MOTET_ABI::detail
