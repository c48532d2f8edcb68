// SPDX-License-Identifier: MIT
// What a thread counts of itself, for stats(). The thread alone writes, with plain moves; any
// thread reads. In the thread's entry in the thread registry, which is never freed.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <motet/runtime/backend.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether anybody has asked for the numbers: until then a thread counts nothing, and pays a
/// branch.
inline constinit std::atomic<bool> counters_are_wanted{false};

/// A number with one writer.
class tally {
 public:
  void set(std::uint64_t number) noexcept { number_.store(number, std::memory_order_relaxed); }
  void add(std::uint64_t amount) noexcept { set(get() + amount); }
  void subtract(std::uint64_t less) noexcept { set(get() - less); }
  std::uint64_t get() const noexcept { return number_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> number_{0};
};

struct thread_counters {
  // As of the last look at the inbox, or the last poll, if somebody has asked by then.
  tally spun, ends, living, runnable, timers_armed, stacks_mapped, stacks_resident;
  // Since the thread counts.
  tally switches, polls, sleeps, ticks_asleep, mail, timers_fired, timers_late;
  std::array<tally, 64> queue_delay;  // by the logarithm of the nanoseconds
  std::array<tally, verbs> in_flight;

  void note_delay(std::uint64_t nanoseconds) noexcept {
    queue_delay[static_cast<std::size_t>(std::bit_width(nanoseconds | 1)) - 1].add(1);
  }
  tally& in_flight_of(const operation& op) noexcept {
    return in_flight[static_cast<std::size_t>(op.kind)];
  }
  /// Clears the gauges when the thread has ended; the totals stay.
  void forget_present() noexcept {
    for (tally* gauge : {&living, &runnable, &timers_armed, &stacks_mapped, &stacks_resident})
      gauge->set(0);
  }
  void add(thread_counters& addend) noexcept {
    each_with(addend, [](tally& sum, const tally& number) { sum.add(number.get()); });
  }
  void clear() noexcept {
    each_with(*this, [](tally& gauge, const tally&) { gauge.set(0); });
  }

 private:
  /// Calls `f(own, other)` for each number.
  template <typename F>
  void each_with(thread_counters& other, F f) noexcept {
    const auto pairs = {std::pair(&spun, &other.spun),
                        std::pair(&ends, &other.ends),
                        std::pair(&living, &other.living),
                        std::pair(&runnable, &other.runnable),
                        std::pair(&timers_armed, &other.timers_armed),
                        std::pair(&stacks_mapped, &other.stacks_mapped),
                        std::pair(&stacks_resident, &other.stacks_resident),
                        std::pair(&switches, &other.switches),
                        std::pair(&polls, &other.polls),
                        std::pair(&sleeps, &other.sleeps),
                        std::pair(&ticks_asleep, &other.ticks_asleep),
                        std::pair(&mail, &other.mail),
                        std::pair(&timers_fired, &other.timers_fired),
                        std::pair(&timers_late, &other.timers_late)};
    for (const auto& [counter, counterpart] : pairs) f(*counter, *counterpart);
    for (std::size_t i = 0; i < queue_delay.size(); ++i) f(queue_delay[i], other.queue_delay[i]);
    for (std::size_t i = 0; i < in_flight.size(); ++i) f(in_flight[i], other.in_flight[i]);
  }
};

}}}  // namespace motet::MOTET_ABI::detail
