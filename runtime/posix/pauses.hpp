// SPDX-License-Identifier: MIT
// Calls whose end no descriptor announces: they are repeated with growing pauses.
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>

#include "io/exact_io.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls `attempt()`, with pauses of 1 to 32 ms in between, until it returns a value; at `due` it
/// is called without a pause. Returns: that value; or nothing, with errno, if an interruption or a
/// signal has ended a pause.
template <typename Attempt>
auto call_with_pauses(thread_state& home, on_signal effect, Attempt attempt,
                      clock::time_point due = no_limit) noexcept -> decltype(attempt()) {
  const signal_start start(effect);
  vain_waits pauses;
  for (;;) {
    if (const auto result = attempt(); result.has_value()) return result;
    const clock::time_point next = std::min(due, home.time.after(pauses.next_pause()));
    const std::int32_t error = await_time(home, next, start);
    if (error != 0) {
      errno = -error;
      return std::nullopt;
    }
  }
}

}}}  // namespace motet::MOTET_ABI::detail
