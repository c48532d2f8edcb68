// SPDX-License-Identifier: MIT
// The present time for the price of reading the processor's counter: extrapolated from the last
// reading of the clock, and rounded up, so that a deadline computed from it is never early.
#pragma once

#include <cstdint>
#include <motet/base/clock.hpp>

#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class tick_clock {
 public:
  /// Reads the clock by `read()` and takes the reading for an anchor.
  template <typename Read>
  clock::time_point read(Read&& read_clock) noexcept {
    std::uint64_t begin = 0;
    clock::time_point reading;
    std::uint64_t duration = 0;
    // If the thread loses the processor in between, the two counts are far apart: it tries again.
    for (int tries = 0; tries < 3; ++tries) {
      begin = ticks();
      reading = read_clock();
      duration = ticks() - begin;
      if (duration < a_moment) break;
    }
    anchor(begin, reading, duration);
    return reading;
  }

  /// Returns: the present instant, up to a microsecond ahead of the clock; never earlier than an
  ///          instant it has returned before.
  template <typename Read>
  clock::time_point now(Read&& read_clock) noexcept {
    const std::uint64_t elapsed = ticks() - anchor_ticks_;
    if (elapsed > trust_span_) return latest(read(read_clock));
    return latest(anchor_ + clock::duration(1 + ((elapsed * scaled_rate_) >> rate_bits)));
  }

 private:
  static constexpr int rate_bits = 32;
  static constexpr std::uint64_t a_moment = 10'000;  // ticks

  void anchor(std::uint64_t ticks_now, clock::time_point reading, std::uint64_t duration) noexcept;
  void measure(std::uint64_t ticks_now, clock::time_point reading) noexcept;

  clock::time_point latest(clock::time_point time) noexcept {
    if (time > latest_) latest_ = time;
    return latest_;
  }

  clock::time_point anchor_{};
  std::uint64_t anchor_ticks_ = 0;
  std::uint64_t scaled_rate_ = 0;  // nanoseconds a tick, in units of 2^-rate_bits
  std::uint64_t span_ = 0;         // ticks for which a good anchor holds; 0: the rate is not known
  std::uint64_t trust_span_ = 0;   // ticks for which the present anchor holds
  clock::time_point latest_{};
  // The rate is measured from here:
  clock::time_point base_{};
  std::uint64_t base_ticks_ = 0;
  bool unsteady_ = !ticks_are_steady();
};

}}}  // namespace motet::MOTET_ABI::detail
