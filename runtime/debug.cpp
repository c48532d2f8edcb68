// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <motet/debug.hpp>

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI {

void dump(std::ostream& out) {
  if (detail::thread_state* thread = detail::self()) thread->dump(out);
}

}  // namespace motet::inline MOTET_ABI
