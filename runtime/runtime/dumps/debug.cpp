// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <locale>
#include <motet/observe/debug.hpp>
#include <ostream>

#include "core/thread_state.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "runtime/dumps/dump.hpp"
#include "runtime/dumps/dump_threads.hpp"
#include "runtime/dumps/leaks.hpp"

namespace motet { inline namespace MOTET_ABI {

void dump(std::ostream& out) {
  dump(out, {});
}

namespace {

/// Calls `write(stream)` with a stream to where `out` leads, which writes numbers as they are,
/// whatever `out` does with those of its owner.
template <typename F>
void write_plainly(std::ostream& out, F write) {
  if (!out) return;
  std::ostream plain(nullptr);
  plain.imbue(std::locale::classic());
  plain.rdbuf(out.rdbuf());  // only now: the buffer keeps its own locale
  plain.exceptions(out.exceptions());
  write(plain);
  if (!plain) out.setstate(plain.rdstate());
}

void dump_here(std::ostream& out, const dump_options& how) {
  detail::thread_state* thread = detail::self();
  if (how.json) out << "{\"threads\": [";
  if (thread != nullptr) detail::dump(*thread, out, how);
  if (how.json) out << "]}\n";
}

/// The process's, whose threads have no fibers.
void write_offloaded(std::ostream& out) {
  const auto load = detail::blocking_pool::load();
  const std::size_t running = load.threads - load.idle;
  if (running + load.in_line == 0) return;
  out << "offloaded calls: " << running << " being made, " << load.in_line
      << " waiting for a thread (the limit is " << detail::blocking_pool::most.load() << ")\n";
}

}  // namespace

void dump(std::ostream& out, const dump_options& how) {
  write_plainly(out, [&](std::ostream& plain) {
    how.all_threads ? detail::dump_threads(plain, how) : dump_here(plain, how);
    if (!how.json) write_offloaded(plain);
  });
}

std::size_t dump_leaks(std::ostream& out) {
  detail::thread_state* thread = detail::self();
  if (thread == nullptr) return 0;
  std::size_t found = 0;
  write_plainly(out, [&](std::ostream& plain) { found = detail::dump_leaks(*thread, plain); });
  return found;
}

no_switch_guard::no_switch_guard(call_site site) noexcept
    : site_(site), thread_(detail::self_core()) {
  if (thread_ != nullptr) outer_ = thread_->forbid_switches(&site_);
}

no_switch_guard::~no_switch_guard() {
  if (thread_ != nullptr) thread_->forbid_switches(outer_);
}

}}  // namespace motet::MOTET_ABI
