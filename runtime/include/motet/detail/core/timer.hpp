// SPDX-License-Identifier: MIT
// One timer; timer_queue keeps them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <motet/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct control_block;

/// Something that is due at an instant; lives in the frame of the fiber it concerns.
struct timer {
  clock::time_point due{};
  control_block* fiber = nullptr;
  void (*fire)(timer&) noexcept = nullptr;
  std::uint64_t order = 0;
  std::size_t place = nowhere;
  bool young = false;  // among the newest, which have a heap of their own

  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  bool armed() const noexcept { return place != nowhere; }
};

}}}  // namespace motet::MOTET_ABI::detail
