// SPDX-License-Identifier: MIT
// See core/counting/queue_delay.hpp.
#include "core/counting/queue_delay.hpp"

#include <algorithm>
#include <chrono>

namespace motet { inline namespace MOTET_ABI { namespace detail {

void queue_delay::end(std::uint64_t switches, thread_counters& counters) noexcept {
  measures_ = false;
  const double share = switches == 0 ? 0.0
                                     : static_cast<double>(std::min(target_distance_, switches)) /
                                           static_cast<double>(switches);
  const double ticks_in_us = static_cast<double>(ticks_in(std::chrono::milliseconds(1))) / 1e3;
  const double us = static_cast<double>(ticks() - ticks_) * share / ticks_in_us;
  counters.note_delay(static_cast<std::uint64_t>(us * 1e3));
}

}}}  // namespace motet::MOTET_ABI::detail
