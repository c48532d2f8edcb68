// SPDX-License-Identifier: MIT
// One line about each fiber of a thread.
#include <chrono>
#include <ostream>

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

const char* word_for(fiber_state state) {
  switch (state) {
    case fiber_state::runnable:
      return "runnable";
    case fiber_state::running:
      return "running";
    case fiber_state::waiting:
      return "waiting";
    case fiber_state::dead:
      return "dead";
  }
  return "?";
}

void describe_wait(std::ostream& out, const wait_record& wait, clock::time_point present) {
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(present - wait.since);
  out << ": " << (wait.cancelling ? "cancelling " : "") << wait.what;
  if (wait.subject >= 0) out << ' ' << wait.subject;
  out << ", for " << waited.count() << " ms";
}

}  // namespace

void thread_state::dump(std::ostream& out) {
  const clock::time_point present = kernel_->now();
  for (control_block* fiber = fibers_.front(); fiber != nullptr; fiber = fibers_.next(*fiber)) {
    const fiber_state state = fiber->state.load(std::memory_order_relaxed);
    out << "fiber " << fiber->id;
    if (fiber->named) out << " \"" << name_of(*fiber) << '"';
    out << ' ' << word_for(state);
    if (fiber->wait != nullptr && state == fiber_state::waiting) {
      describe_wait(out, *fiber->wait, present);
    }
    if (!fiber->is_main) out << "; spun at " << fiber->site.file << ':' << fiber->site.line;
    out << '\n';
  }
}

}  // namespace motet::inline MOTET_ABI::detail
