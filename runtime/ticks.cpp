// SPDX-License-Identifier: MIT
// See ticks.hpp.
#include "ticks.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

double measure_ticks_per_nanosecond() noexcept {
  using steady = std::chrono::steady_clock;
  const auto from = steady::now();
  const std::uint64_t first = ticks();
  auto to = from;
  while (to - from < std::chrono::microseconds(20)) to = steady::now();
  const std::uint64_t last = ticks();
  return static_cast<double>(last - first) / static_cast<double>((to - from).count());
}

}  // namespace

std::uint64_t ticks_in(std::chrono::nanoseconds span) noexcept {
  static const double ticks_per_nanosecond = measure_ticks_per_nanosecond();
  return static_cast<std::uint64_t>(static_cast<double>(span.count()) * ticks_per_nanosecond);
}

}  // namespace motet::inline MOTET_ABI::detail
