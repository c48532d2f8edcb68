// SPDX-License-Identifier: MIT
// A length of time in whatever unit a caller has.
#pragma once

#include <chrono>
#include <motet/base/clock.hpp>
#include <ratio>
#include <type_traits>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Fractions of a nanosecond are rounded up. A span too long for clock::duration becomes its
/// maximum, and a negative span becomes 0.
struct timespan {
  template <typename Rep, typename Period>
  constexpr timespan(std::chrono::duration<Rep, Period> span) noexcept : length(limited(span)) {}
  template <typename Number>
    requires std::is_arithmetic_v<Number>
  constexpr timespan(Number) noexcept : length(0) {
    static_assert(!std::is_arithmetic_v<Number>,
                  "a time is a std::chrono duration, as 5s or 100ms, and not a number");
  }

  clock::duration length;

 private:
  template <typename Rep, typename Period>
  static constexpr clock::duration limited(std::chrono::duration<Rep, Period> span) noexcept {
    using unit = std::ratio_divide<Period, clock::period>;
    constexpr auto limit = static_cast<long double>(clock::duration::max().count());
    if (!(span.count() > 0)) return clock::duration::zero();
    const long double length = static_cast<long double>(span.count()) * unit::num / unit::den;
    if (length >= limit) return clock::duration::max();
    return std::chrono::ceil<clock::duration>(span);
  }
};

}}}  // namespace motet::MOTET_ABI::detail
