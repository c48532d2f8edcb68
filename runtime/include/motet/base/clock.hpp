// SPDX-License-Identifier: MIT
// The clock that every deadline is measured with.
#pragma once

#include <chrono>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Monotonic time as this thread's backend tells it: CLOCK_MONOTONIC, or virtual time under `sim`.
struct clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;

  /// Returns: the present instant; never earlier than the true one.
  /// Not a switchpoint. Any thread.
  /// Source: clock_gettime(2), CLOCK_MONOTONIC.
  static time_point now() noexcept;
};

}}  // namespace motet::MOTET_ABI
