// SPDX-License-Identifier: MIT
// See detail/core/self.hpp.
#include <motet/detail/core/self.hpp>

#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

// It is read by assembly, of which an optimiser of the whole program knows nothing.
[[gnu::used]] thread_local constinit thread_core* motet_self = nullptr;

/// No store is moved past the assembly that reads it.
void set_self(thread_core* thread) noexcept {
  motet_self = thread;
  asm volatile("" ::: "memory");
}

thread_core& begin_here() {
  return hooks.begin_runtime();
}

}}}  // namespace motet::MOTET_ABI::detail
