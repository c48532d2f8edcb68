// SPDX-License-Identifier: MIT
// Waiting for the first of several descriptors.
#pragma once

#include <poll.h>

#include <span>

#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Waits until poll(2) would report one of the entries, which it did not just now.
/// Returns: 0, perhaps for no reason; -ETIME if `due` has passed; minus another error.
std::int32_t await_any_ready(thread_state& home, std::span<const pollfd> entries,
                             clock::time_point due, const signal_start& start) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
