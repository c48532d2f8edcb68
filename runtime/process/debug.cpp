// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <motet/debug.hpp>

#include "heart/thread_state.hpp"
#include "process/dump.hpp"

namespace motet { inline namespace MOTET_ABI {

void dump(std::ostream& out) {
  if (detail::thread_state* thread = detail::self()) detail::dump(*thread, out);
}

}}  // namespace motet::MOTET_ABI
