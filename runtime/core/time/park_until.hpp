// SPDX-License-Identifier: MIT
// A wait of the running fiber that ends at an instant, if nothing else ends it before.
#pragma once

#include <motet/detail/core/wait_record.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Parks until `wait`, a record in the frame of the running fiber, has been claimed. There is room
/// for its timer. Without a limit if `due` is the clock's maximum.
/// Returns: wake_reason::time if `due` has passed; otherwise as park().
inline wake_reason park_until(thread_state& home, wait_record& wait,
                              clock::time_point due) noexcept {
  struct time_limit : timer {
    wait_record* wait = nullptr;
  } limit;
  limit.wait = &wait;
  limit.fiber = &home.running();
  limit.due = due;
  limit.fire = [](timer& alarm) noexcept {
    alarm.fiber->home->resume(*static_cast<time_limit&>(alarm).wait, wake_reason::time);
  };
  if (due != clock::time_point::max()) home.time.arm(limit);
  const wake_reason reason = home.park(wait);
  home.time.disarm(limit);
  return reason;
}

}}}  // namespace motet::MOTET_ABI::detail
