// SPDX-License-Identifier: MIT
// The processor's counter, which measures time without a system call.
#pragma once

#include <chrono>
#include <cstdint>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: a count that grows at a steady rate of 1/1,000 to 10 a nanosecond.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // <x86intrin.h> would take a second to compile
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
#error "motet knows no counter of this architecture"
#endif
}

/// Lets the processor rest for some ten nanoseconds, in a loop that waits for another processor.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns: whether, by the processor's own account, its counter always runs at one rate.
bool ticks_are_steady() noexcept;

/// Returns: how many ticks `span` takes, within a hundredth. Measured once per process.
std::uint64_t ticks_in(std::chrono::nanoseconds span) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
