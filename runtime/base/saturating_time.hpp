// SPDX-License-Identifier: MIT
// The sum of an instant and a span, which cannot overflow.
#pragma once

#include <motet/base/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: `begin` plus `span`, or the maximum if that is not representable.
inline clock::time_point deadline_after(clock::time_point begin, clock::duration span) noexcept {
  if (span <= clock::duration::zero()) return begin;
  const auto remaining = clock::time_point::max() - begin;
  return span < remaining ? begin + span : clock::time_point::max();
}

/// Returns: `due` by another clock, which is `shift` ahead. The last instant is never, on any
/// clock.
inline clock::time_point by_other_clock(clock::time_point due, clock::duration shift) noexcept {
  if (shift > clock::duration::zero()) return deadline_after(due, shift);
  return due == clock::time_point::max() ? due : due + shift;
}

}}}  // namespace motet::MOTET_ABI::detail
