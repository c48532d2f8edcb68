// SPDX-License-Identifier: MIT
// Trying a call without waiting, on a descriptor of either mode. A readiness-based backend tries
// each operation first, and again when its descriptor is ready.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <motet/runtime/backend.hpp>

#include "base/verb_table.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether the descriptor has a file position. Files do; so do epoll instances and their like,
/// which a ring would read from without end. May block behind a call that moves the position.
bool has_position(int fd) noexcept;
bool is_socket(int fd) noexcept;
/// As is_disk(), but faster for pipes and sockets. May block like has_position().
bool on_disk(int fd) noexcept;

/// Whether pipes in blocking mode can be asked not to wait: since Linux 6.4. Asks the kernel once.
bool pipes_know_nowait() noexcept;

/// operation::spurious_wakes counts up to this; then the pauses between two tries stop growing.
inline constexpr std::uint8_t most_spurious_wakes = 7;

/// Called when `op` would wait although its descriptor was reported ready.
/// Returns: true if the descriptor is still ready and was also ready the previous time, so that
///          another wait would end immediately.
bool waits_in_vain(operation& op) noexcept;

/// Message flags with which a call never waits. Source: recv(2).
inline constexpr int never_wait = MSG_DONTWAIT | MSG_ERRQUEUE;
/// Whether `op` is to fail with EAGAIN where it would wait.
bool may_not_wait(const operation& op) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
