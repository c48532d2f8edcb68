// SPDX-License-Identifier: MIT
// What the library keeps for a fiber, made when it is first needed.
#pragma once

#include <motet/posix.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct fiber_part {
  const posix_section* section = nullptr;  // the innermost one
  unsigned refusals = 0;                   // in a row: see refusals.hpp

  /// Returns: the running fiber's; null if it has none. Takes no memory: an allocator may ask.
  static fiber_part* find() noexcept;
  /// Returns: the running fiber's, made now if it has none. Throws: std::bad_alloc.
  static fiber_part& get();
};

}}}  // namespace motet::MOTET_ABI::detail
