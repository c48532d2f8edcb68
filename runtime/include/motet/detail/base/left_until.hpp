// SPDX-License-Identifier: MIT
// How long it is until an instant of any clock.
#pragma once

#include <chrono>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the time remaining until `end`; negative if `end` has passed.
template <typename Clock, typename Duration>
auto remaining_until(const std::chrono::time_point<Clock, Duration>& end) {
  return end - Clock::now();
}

}}}  // namespace motet::MOTET_ABI::detail
