// SPDX-License-Identifier: MIT
// See platform/ticks.hpp.
#include "platform/ticks.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Source: Intel SDM, 18.17.1, "Invariant TSC"; the generic timer of Arm is always steady.
bool says_its_counter_is_steady() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
#else
  return true;
#endif
}

}  // namespace

/// Asked once: in a virtual machine each cpuid instruction leaves the guest.
bool ticks_are_steady() noexcept {
  static const bool steady = says_its_counter_is_steady();
  return steady;
}

std::uint64_t ticks_in(std::chrono::nanoseconds span) noexcept {
  static const double ticks_per_nanosecond =
      measure_ticks_per_nanosecond(std::chrono::steady_clock::now);
  return static_cast<std::uint64_t>(static_cast<double>(span.count()) * ticks_per_nanosecond);
}

}}}  // namespace motet::MOTET_ABI::detail
