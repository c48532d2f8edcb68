// SPDX-License-Identifier: MIT
// Trying a call without waiting, on a descriptor of either mode: what readiness-based backends do
// first, and again when the descriptor is ready.
#pragma once

#include <cstdint>
#include <motet/backend.hpp>

namespace motet::inline MOTET_ABI::detail {

/// Makes the call that `op` describes.
/// Returns: true if that was it, with op.result set, perhaps to operation::would_block_thread;
///          false if it must wait for readiness_of(op).
bool attempt(operation& op) noexcept;

/// Returns: what `op` waits for: POLLIN, POLLOUT, or the mask of wait_fd.
short readiness_of(const operation& op) noexcept;

/// Returns: the name of a verb's fault point.
const char* name_of(verb kind) noexcept;

}  // namespace motet::inline MOTET_ABI::detail
