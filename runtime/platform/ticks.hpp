// SPDX-License-Identifier: MIT
// The processor's counter, which measures time without a system call.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: a count that grows at a steady rate of 1/1,000 to 10 a nanosecond.
inline std::uint64_t ticks() noexcept {
#if defined(MOTET_EXPLORED)
  if (explorer::current_controller != nullptr) return explorer::current_controller->ticks();
#endif
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
#if defined(MOTET_EXPLORED)
  if (explorer::current_controller != nullptr) return explorer::current_controller->pause();
#endif
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

struct clock_reading {
  std::chrono::steady_clock::time_point time;
  std::uint64_t ticks;
};

/// A thread may lose the processor between the clock and the counter: of some readings, the one
/// that took the fewest ticks counts.
template <typename Read>
clock_reading read_clock_and_ticks(Read&& read_clock) noexcept {
  clock_reading best{};
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (int tries = 0; tries < 8; ++tries) {
    const std::uint64_t begin = ticks();
    const auto time = read_clock();
    const std::uint64_t duration = ticks() - begin;
    if (duration >= fewest) continue;
    fewest = duration;
    best = {time, begin + duration / 2};
  }
  return best;
}

/// Takes 20 us. Returns: the ticks in a nanosecond, within a hundredth.
template <typename Read>
double measure_ticks_per_nanosecond(Read read_clock) noexcept {
  const clock_reading first = read_clock_and_ticks(read_clock);
  while (read_clock() - first.time < std::chrono::microseconds(20)) continue;
  const clock_reading last = read_clock_and_ticks(read_clock);
  return static_cast<double>(last.ticks - first.ticks) /
         static_cast<double>((last.time - first.time).count());
}

}}}  // namespace motet::MOTET_ABI::detail
