// SPDX-License-Identifier: MIT
// Trying a call without waiting, on a descriptor of either mode: what readiness-based backends do
// first, and again when the descriptor is ready.
#pragma once

#include <cstdint>
#include <motet/backend.hpp>

#include "words/verb_table.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Makes the call that `op` describes.
/// Returns: true if that was it, with op.result set, perhaps to operation::would_block_thread;
///          false if it must wait for readiness_of(op).
bool attempt(operation& op) noexcept;

/// Whether it is a file or a disk: always ready, but perhaps without the data at hand.
bool on_disk(int fd) noexcept;

/// From so many fruitless readinesses on the pauses between two tries grow no more.
inline constexpr std::uint8_t most_fruitless = 7;

/// Called when `op` would wait although its descriptor was said to be ready.
/// Returns: whether it is ready still, and was so the last time, too: a wait would be over at once.
bool waits_in_vain(operation& op) noexcept;

/// Whether `op` is to fail with EAGAIN where it would wait.
bool may_not_wait(const operation& op) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
