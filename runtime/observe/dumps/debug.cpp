// SPDX-License-Identifier: MIT
// See debug.hpp.
#include <locale>
#include <motet/observe/debug.hpp>
#include <ostream>

#include "core/thread_state.hpp"
#include "observe/dumps/dump.hpp"
#include "observe/dumps/dump_threads.hpp"
#include "observe/dumps/leaks.hpp"
#include "platform/offload/blocking_pool.hpp"

namespace motet { inline namespace MOTET_ABI {

void dump(std::ostream& output) {
  dump(output, {});
}

namespace {

/// Calls `write(stream)` with a stream to where `output` leads, which writes numbers as they are,
/// whatever `output` does with those of its owner.
template <typename F>
void write_plainly(std::ostream& output, F write) {
  if (!output) return;
  std::ostream plain(nullptr);
  plain.imbue(std::locale::classic());
  plain.rdbuf(output.rdbuf());  // only now: the buffer keeps its own locale
  plain.exceptions(output.exceptions());
  write(plain);
  if (!plain) output.setstate(plain.rdstate());
}

void dump_here(std::ostream& output, const dump_options& options) {
  detail::thread_state* thread = detail::self();
  if (options.json) output << "{\"threads\": [";
  if (thread != nullptr) detail::dump(*thread, output, options);
  if (options.json) output << "]}\n";
}

/// The process's, whose threads have no fibers.
void write_offloaded(std::ostream& output) {
  const auto load = detail::blocking_pool::load();
  const std::size_t calls = load.threads - load.idle;
  if (calls + load.in_line == 0) return;
  output << "offloaded calls: " << calls << " being made, " << load.in_line
         << " waiting for a thread (the limit is " << detail::blocking_pool::most.load() << ")\n";
}

}  // namespace

void dump(std::ostream& output, const dump_options& options) {
  write_plainly(output, [&](std::ostream& plain) {
    options.all_threads ? detail::dump_threads(plain, options) : dump_here(plain, options);
    if (!options.json) write_offloaded(plain);
  });
}

std::size_t dump_leaks(std::ostream& output) {
  detail::thread_state* thread = detail::self();
  if (thread == nullptr) return 0;
  std::size_t count = 0;
  write_plainly(output, [&](std::ostream& plain) { count = detail::dump_leaks(*thread, plain); });
  return count;
}

no_switch_guard::no_switch_guard(call_site site) noexcept
    : site_(site), thread_(detail::self_core()) {
  if (thread_ != nullptr) outer_ = thread_->forbid_switches(&site_);
}

no_switch_guard::~no_switch_guard() {
  if (thread_ != nullptr) thread_->forbid_switches(outer_);
}

}}  // namespace motet::MOTET_ABI
