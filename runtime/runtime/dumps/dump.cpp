// SPDX-License-Identifier: MIT
// See runtime/dumps/dump.hpp.
#include "runtime/dumps/dump.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "core/thread_state.hpp"
#include "platform/parked_frames.hpp"
#include "runtime/dumps/fiber_frames.hpp"
#include "runtime/dumps/lock_holders.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A fiber of another thread may be given another name just now.
void name(std::ostream& out, const thread_state& thread, const control_block& fiber) {
  out << "fiber " << fiber.id;
  if (!thread.is_home_of(fiber)) {
    const std::string copy = copied_name_of(fiber);
    if (!copy.empty()) out << " \"" << quotable(copy) << '"';
  } else if (fiber.named) {
    out << " \"" << quotable(name_of(fiber)) << '"';
  }
}

/// The first few; the rest have lines of their own.
void name_children(std::ostream& out, const thread_state& thread, family& awaited) {
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
    name(out, thread, *child);
    before = ", ";
  }
}

void name_holder(std::ostream& out, const thread_state& thread, const lock_holder& holder) {
  using kind = lock_holder::kind;
  out << ", held by ";
  if (holder.what == kind::main_fiber) {
    out << "the main fiber";
  } else if (holder.what == kind::other_thread) {
    out << "another thread";
  } else if (holder.block != nullptr) {
    name(out, thread, *holder.block);
  } else {
    out << "fiber " << holder.id << (holder.ended ? ", which has ended" : "");
  }
}

void describe_wait(std::ostream& out, const thread_state& thread, control_block& fiber,
                   lock_holders& holders, clock::time_point present) {
  const wait_record& wait = *fiber.wait;
  out << ": " << (wait.cancelling ? "cancelling " : "") << wait.description;
  if (wait.of_object) {
    out << " 0x" << std::hex << wait.subject << std::dec;
  } else if (wait.subject >= 0) {
    out << ' ' << wait.subject;
  }
  if (const auto holder = holders.of(wait)) {
    name_holder(out, thread, *holder);
  } else if (!wait.for_lock && wait.target != nullptr) {
    out << (wait.subject >= 0 ? ", held up by " : " ");
    name(out, thread, **wait.target);
  }
  cold_part* parts = cold_if_any(fiber);
  for (family* each = parts == nullptr ? nullptr : &parts->own_family; each != nullptr;
       each = each->next) {
    if (each->owner_wait == &wait) name_children(out, thread, *each);
  }
  out << ", for " << waited(wait, present) << " ms";
}

}  // namespace

void dump_line(std::ostream& out, const thread_state& thread, control_block& fiber,
               lock_holders& holders, clock::time_point present) {
  name(out, thread, fiber);
  out << ' ' << doing(fiber);
  if (wait_of(fiber) != nullptr) describe_wait(out, thread, fiber, holders, present);
  if (!fiber.is_main) out << "; spun at " << fiber.site.file << ':' << fiber.site.line;
}

const char* doing(const control_block& fiber) noexcept {
  switch (fiber.state.load(std::memory_order_relaxed)) {
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

const wait_record* wait_of(const control_block& fiber) noexcept {
  const bool waits = fiber.state.load(std::memory_order_relaxed) == fiber_state::waiting;
  return waits ? fiber.wait : nullptr;
}

long long waited(const wait_record& wait, clock::time_point present) noexcept {
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(present - wait.start);
  return std::max<long long>(span.count(), 0);
}

bool has_more_fibers(thread_state& thread, std::size_t most) noexcept {
  auto& fibers = thread.fibers();
  control_block* fiber = fibers.front();
  while (fiber != nullptr && most > 0) {
    fiber = fibers.next(*fiber);
    --most;
  }
  return fiber != nullptr;
}

namespace {

class fiber_lines {
 public:
  fiber_lines(thread_state& thread, std::ostream& out, bool stacks)
      : thread_(thread), out_(out), stacks_(stacks), holders_(thread) {}

  void write(control_block& fiber, std::size_t depth = 0) {
    const std::string indent(2 * depth, ' ');
    out_ << indent;
    dump_line(out_, thread_, fiber, holders_, present_);
    out_ << '\n';
    if (!stacks_) return;
    const auto frames = frames_of(thread_, fiber, room_);
    if (frames.empty()) {
      out_ << indent
           << (has_begun(fiber.resume_context) ? "  its stack is not known\n" : "  not started\n");
    }
    for (const void* each : frames) out_ << indent << "  " << names_.of(each) << '\n';
  }

 private:
  thread_state& thread_;
  std::ostream& out_;
  const bool stacks_;
  const clock::time_point present_ = thread_.kernel().now();
  frame_names names_;
  lock_holders holders_;
  std::array<void*, most_frames> room_;
};

}  // namespace

void dump_fibers(thread_state& thread, std::ostream& out, bool stacks) {
  fiber_lines lines(thread, out, stacks);
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    lines.write(*fiber);
  }
}

void dump_tree(thread_state& thread, std::ostream& out, bool stacks) {
  struct level {
    family* of;
    control_block* next;  // of its children
  };
  fiber_lines lines(thread, out, stacks);
  lines.write(thread.main_fiber());
  std::vector<level> path;
  const auto enter = [&](family& children) {
    path.push_back({&children, children.children.front()});
  };
  enter(thread.cleaner.fibers());  // motet's own have no other parent
  enter(cold(thread.main_fiber()).own_family);
  while (!path.empty()) {
    level& deepest = path.back();
    if (control_block* child = deepest.next) {
      deepest.next = deepest.of->children.next(*child);
      lines.write(*child, std::max<std::size_t>(path.size(), 2) - 1);
      if (cold_part* part = cold_if_any(*child)) enter(part->own_family);
    } else if (deepest.of->next != nullptr) {
      deepest = {deepest.of->next, deepest.of->next->children.front()};
    } else {
      path.pop_back();
    }
  }
}

void dump(thread_state& thread, std::ostream& out, const dump_options& how) {
  if (how.json) return dump_json(thread, out, how);
  if (how.group_by_site) return dump_groups(thread, out, how);
  if (how.tree) return dump_tree(thread, out, how.stacks);
  dump_fibers(thread, out, how.stacks);
}

}}}  // namespace motet::MOTET_ABI::detail
