// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <motet/debug.hpp>
#include <ostream>

#include "heart/thread_state.hpp"
#include "process/dumps/dump.hpp"
#include "process/dumps/dump_threads.hpp"

namespace motet { inline namespace MOTET_ABI {

void dump(std::ostream& out) {
  dump(out, {});
}

void dump(std::ostream& out, const dump_options& how) {
  if (how.all_threads) return detail::dump_threads(out, how);
  detail::thread_state* thread = detail::self();
  if (how.json) out << "{\"threads\": [";
  if (thread != nullptr) detail::dump(*thread, out, how);
  if (how.json) out << "]}\n";
}

}}  // namespace motet::MOTET_ABI
