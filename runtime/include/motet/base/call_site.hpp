// SPDX-License-Identifier: MIT
// A source location, for people to read: where a fiber was spun, or where it was cancelled.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// The source location of a call. As a default argument, here() yields the caller's location.
struct call_site {
  const char* file = "";
  unsigned line = 0;

  /// Not a switchpoint.
  static constexpr call_site here(const char* file = __builtin_FILE(),
                                  unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}}  // namespace motet::MOTET_ABI
