// SPDX-License-Identifier: MIT
// Sleeping.
#pragma once

#include <chrono>
#include <limits>
#include <motet/clock.hpp>

namespace motet::inline MOTET_ABI {

/// Sleeps until `when`, never less; an instant that has passed lets every runnable fiber run once.
/// Switchpoint.
/// Throws: what is pending for this fiber.
void sleep_until(clock::time_point when);

/// Sleeps for `span`, never less; any length, also one that no clock will see the end of.
/// Switchpoint.
/// Throws: what is pending for this fiber.
void sleep_for(clock::duration span);

/// The same for any unit; a span too long for nanoseconds sleeps for ever.
/// Switchpoint.
template <typename Rep, typename Period>
void sleep_for(std::chrono::duration<Rep, Period> span) {
  using exact = std::chrono::duration<long double>;
  if (span <= span.zero()) {
    sleep_for(clock::duration::zero());
  } else if (std::chrono::duration_cast<exact>(span) >= exact(clock::duration::max())) {
    sleep_for(clock::duration::max());
  } else {
    sleep_for(std::chrono::ceil<clock::duration>(span));
  }
}

/// Sleeps until something is thrown into this fiber.
/// Switchpoint.
/// Throws: what is pending for this fiber.
[[noreturn]] void sleep();

}  // namespace motet::inline MOTET_ABI
