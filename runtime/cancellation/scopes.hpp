// SPDX-License-Identifier: MIT
// What a thread must know of the scopes of a fiber that comes to it.
#pragma once

#include <cstddef>
#include <motet/detail/core/scope.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: for how many of its scopes a thread must have room for a timer.
inline std::size_t timers_of_scopes(const scope_entry* innermost) noexcept {
  std::size_t count = 0;
  for (const scope_entry* entry = innermost; entry != nullptr; entry = entry->outer) {
    if (entry->kind == scope_kind::ends) ++count;
  }
  return count;
}

}}}  // namespace motet::MOTET_ABI::detail
