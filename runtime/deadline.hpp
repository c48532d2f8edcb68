// SPDX-License-Identifier: MIT
// From a span to an instant.
#pragma once

#include <motet/clock.hpp>

namespace motet::inline MOTET_ABI::detail {

/// Returns: the instant `span` after `from`, or the last one there is.
clock::time_point deadline_after(clock::time_point from, clock::duration span) noexcept;

}  // namespace motet::inline MOTET_ABI::detail
