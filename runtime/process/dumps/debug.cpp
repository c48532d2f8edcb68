// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <locale>
#include <motet/debug.hpp>
#include <ostream>

#include "heart/thread_state.hpp"
#include "process/dumps/dump.hpp"
#include "process/dumps/dump_threads.hpp"

namespace motet { inline namespace MOTET_ABI {

void dump(std::ostream& out) {
  dump(out, {});
}

/// Numbers are written as they are, whatever `out` does with those of its owner.
void dump(std::ostream& out, const dump_options& how) {
  if (!out) return;
  std::ostream plain(nullptr);
  plain.imbue(std::locale::classic());
  plain.rdbuf(out.rdbuf());  // only now: the buffer keeps its own locale
  plain.exceptions(out.exceptions());
  if (how.all_threads) {
    detail::dump_threads(plain, how);
  } else {
    detail::thread_state* thread = detail::self();
    if (how.json) plain << "{\"threads\": [";
    if (thread != nullptr) detail::dump(*thread, plain, how);
    if (how.json) plain << "]}\n";
  }
  if (!plain) out.setstate(plain.rdstate());
}

}}  // namespace motet::MOTET_ABI
