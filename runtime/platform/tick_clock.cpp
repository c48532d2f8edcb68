// SPDX-License-Identifier: MIT
// See platform/tick_clock.hpp. The kernel's clock runs faster or slower by up to 500 parts in a
// million while it is being adjusted (adjtimex(2)); the measured rate is wrong by less.
#include "platform/tick_clock.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using namespace std::chrono_literals;

constexpr auto shortest_base = 10ms;
constexpr auto longest_base = 1s;
constexpr auto trusted_span = 1ms;
constexpr double rounded_up = 1.001;
/// An extrapolation over so many trusted spans is rounded up by more than it can be wrong, and does
/// not overflow.
constexpr std::uint64_t spans_compared = 16;

}  // namespace

void tick_clock::anchor(std::uint64_t ticks_now, clock::time_point reading,
                        std::uint64_t duration) noexcept {
  const std::uint64_t elapsed = ticks_now - anchor_ticks_;
  const bool is_comparable = trust_span_ > 0 && elapsed < spans_compared * trust_span_;
  const auto estimate = anchor_ + clock::duration((elapsed * scaled_rate_) >> rate_bits);
  anchor_ = reading;
  anchor_ticks_ = ticks_now;
  trust_span_ = 0;
  if (unsteady_ || duration >= a_moment) return;
  // A counter that has stood still, as in a virtual machine that was moved, is not trusted again.
  if (is_comparable && estimate + 10us < reading) {
    unsteady_ = true;
    return;
  }
  measure(ticks_now, reading);
  trust_span_ = span_;
}

void tick_clock::measure(std::uint64_t ticks_now, clock::time_point reading) noexcept {
  const auto base = reading - base_;
  if (base_ticks_ == 0 || base > 10 * longest_base || ticks_now < base_ticks_) {
    base_ = reading;
    base_ticks_ = ticks_now;
    return;
  }
  if (base < shortest_base) return;
  const double rate =
      static_cast<double>(base.count()) / static_cast<double>(ticks_now - base_ticks_);
  scaled_rate_ = static_cast<std::uint64_t>(rate * rounded_up * (std::uint64_t{1} << rate_bits));
  span_ = static_cast<std::uint64_t>(clock::duration(trusted_span).count() / rate);
  if (base > longest_base) {
    base_ = reading;
    base_ticks_ = ticks_now;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
