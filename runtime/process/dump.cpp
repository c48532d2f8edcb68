// SPDX-License-Identifier: MIT
// See process/dump.hpp.
#include "process/dump.hpp"

#include <chrono>
#include <ostream>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

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

void name(std::ostream& out, const control_block& fiber) {
  out << "fiber " << fiber.id;
  if (fiber.named) out << " \"" << name_of(fiber) << '"';
}

/// The first few; the rest have lines of their own.
void name_children(std::ostream& out, family& awaited) {
  int left = 4;
  const char* before = ": ";
  for (control_block* child = awaited.children.front(); child != nullptr;
       child = awaited.children.next(*child)) {
    if (child->transient && awaited.waits_until != until::all_over) continue;
    out << before;
    if (left-- == 0) {
      out << "and others";
      return;
    }
    name(out, *child);
    before = ", ";
  }
}

void describe_wait(std::ostream& out, control_block& fiber, clock::time_point present) {
  const wait_record& wait = *fiber.wait;
  out << ": " << (wait.cancelling ? "cancelling " : "") << wait.what;
  if (wait.subject >= 0) out << ' ' << wait.subject;
  if (wait.target != nullptr) {
    out << (wait.subject >= 0 ? ", held up by " : " ");
    name(out, **wait.target);
  }
  cold_part* parts = cold_if_any(fiber);
  for (family* each = parts == nullptr ? nullptr : &parts->own_family; each != nullptr;
       each = each->next) {
    if (each->waiter == &wait) name_children(out, *each);
  }
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(present - wait.since);
  out << ", for " << waited.count() << " ms";
}

}  // namespace

void dump(thread_state& thread, std::ostream& out) {
  const clock::time_point present = thread.kernel().now();
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    const fiber_state state = fiber->state.load(std::memory_order_relaxed);
    name(out, *fiber);
    out << ' ' << word_for(state);
    if (fiber->wait != nullptr && state == fiber_state::waiting) {
      describe_wait(out, *fiber, present);
    }
    if (!fiber->is_main) out << "; spun at " << fiber->site.file << ':' << fiber->site.line;
    out << '\n';
  }
}

}}}  // namespace motet::MOTET_ABI::detail
