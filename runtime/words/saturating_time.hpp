// SPDX-License-Identifier: MIT
// The sum of an instant and a span, which cannot overflow.
#pragma once

#include <motet/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the instant `span` after `from`, or the last one there is.
inline clock::time_point deadline_after(clock::time_point from, clock::duration span) noexcept {
  if (span <= clock::duration::zero()) return from;
  const auto left = clock::time_point::max() - from;
  return span < left ? from + span : clock::time_point::max();
}

}}}  // namespace motet::MOTET_ABI::detail
