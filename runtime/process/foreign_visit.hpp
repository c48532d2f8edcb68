// SPDX-License-Identifier: MIT
// A fiber on a thread that has no runtime.
#pragma once

#include <cstdint>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// What the fiber finds there instead of one, and what another one has found there before.
class foreign_visit {
 public:
  /// Throws: std::bad_alloc; stack_unavailable if there is no memory for what it needs.
  foreign_visit();
  foreign_visit(const foreign_visit&) = delete;
  foreign_visit& operator=(const foreign_visit&) = delete;
  ~foreign_visit();

 private:
  const std::uintptr_t before_;  // what stood in the runtime's place
};

}}}  // namespace motet::MOTET_ABI::detail
