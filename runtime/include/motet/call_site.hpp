// SPDX-License-Identifier: MIT
// A line of a program, for people: where a fiber was spun, where it was cancelled.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Where a call stands in the program's text. As a default argument here() is the caller's place.
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
