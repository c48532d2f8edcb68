// SPDX-License-Identifier: MIT
// How long it is until an instant of any clock.
#pragma once

#include <chrono>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: how much time is left until `end`, which may be past.
template <typename Clock, typename Duration>
auto left_until(const std::chrono::time_point<Clock, Duration>& end) {
  return end - Clock::now();
}

}}}  // namespace motet::MOTET_ABI::detail
