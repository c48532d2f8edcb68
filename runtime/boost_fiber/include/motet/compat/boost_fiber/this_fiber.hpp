// SPDX-License-Identifier: MIT
// Operations on the running fiber, under the names of Boost.Fiber.
#pragma once

#include <chrono>
#include <motet/compat/boost_fiber/fiber.hpp>
#include <motet/detail/base/left_until.hpp>
#include <motet/sync/time.hpp>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

namespace this_fiber {

/// Not a switchpoint.
inline fiber::id get_id() {
  return fiber::id(motet::current().id());
}

/// As motet::snooze().
/// Switchpoint.
inline void yield() {
  motet::snooze();
}

/// As motet::sleep_for().
/// Switchpoint.
template <typename Rep, typename Period>
void sleep_for(const std::chrono::duration<Rep, Period>& span) {
  motet::sleep_for(span);
}

/// Switchpoint.
template <typename Clock, typename Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& end) {
  motet::sleep_for(detail::remaining_until(end));
}

}}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber::this_fiber
