// SPDX-License-Identifier: MIT
// See observe/dumps/dump.hpp.
#include "observe/dumps/dump.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "core/thread_state.hpp"
#include "observe/dumps/fiber_frames.hpp"
#include "observe/dumps/lock_holders.hpp"
#include "platform/frames/parked_frames.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A fiber of another thread may be given another name just now.
void name(std::ostream& output, const thread_state& thread, const control_block& fiber) {
  output << "fiber " << fiber.id;
  if (!thread.is_home_of(fiber)) {
    const std::string copy = copied_name_of(fiber);
    if (!copy.empty()) output << " \"" << quotable(copy) << '"';
  } else if (fiber.named) {
    output << " \"" << quotable(name_of(fiber)) << '"';
  }
}

/// The first few; the rest have lines of their own.
void name_children(std::ostream& output, const thread_state& thread, family& group) {
  int remaining = 4;
  const char* separator = ": ";
  for (control_block* child = group.children.front(); child != nullptr;
       child = group.children.next(*child)) {
    if (child->transient && group.waits_until != until::all_over) continue;
    output << separator;
    if (remaining-- == 0) {
      output << "and others";
      return;
    }
    name(output, thread, *child);
    separator = ", ";
  }
}

void name_holder(std::ostream& output, const thread_state& thread, const lock_holder& holder) {
  using kind = lock_holder::kind;
  output << ", held by ";
  if (holder.type == kind::main_fiber) {
    output << "the main fiber";
  } else if (holder.type == kind::other_thread) {
    output << "another thread";
  } else if (holder.block != nullptr) {
    name(output, thread, *holder.block);
  } else {
    output << "fiber " << holder.id << (holder.ended ? ", which has ended" : "");
  }
}

void describe_wait(std::ostream& output, const thread_state& thread, control_block& fiber,
                   lock_holders& holders, clock::time_point present) {
  const wait_record& wait = *fiber.wait;
  output << ": " << (wait.cancelling ? "cancelling " : "") << wait.description;
  if (wait.of_object()) {
    output << " 0x" << std::hex << wait.subject << std::dec;
  } else if (wait.subject >= 0) {
    output << ' ' << wait.subject;
  }
  if (const auto holder = holders.of(wait)) {
    name_holder(output, thread, *holder);
  } else if (!wait.for_lock() && wait.target != nullptr) {
    output << (wait.subject >= 0 ? ", held up by " : " ");
    name(output, thread, **wait.target);
  }
  cold_part* parts = cold_if_any(fiber);
  for (family* group = parts == nullptr ? nullptr : &parts->own_family; group != nullptr;
       group = group->next) {
    if (group->owner_wait == &wait) name_children(output, thread, *group);
  }
  output << ", for " << waited(wait, present) << " ms";
}

}  // namespace

void dump_line(std::ostream& output, const thread_state& thread, control_block& fiber,
               lock_holders& holders, clock::time_point present) {
  name(output, thread, fiber);
  output << ' ' << doing(fiber);
  if (wait_of(fiber) != nullptr) describe_wait(output, thread, fiber, holders, present);
  if (!fiber.is_main) output << "; spun at " << fiber.site.file << ':' << fiber.site.line;
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

bool has_more_fibers(thread_state& thread, std::size_t limit) noexcept {
  auto& fibers = thread.fibers();
  control_block* fiber = fibers.front();
  while (fiber != nullptr && limit > 0) {
    fiber = fibers.next(*fiber);
    --limit;
  }
  return fiber != nullptr;
}

namespace {

class fiber_lines {
 public:
  fiber_lines(thread_state& thread, std::ostream& output, bool stacks)
      : thread_(thread), output_(output), stacks_(stacks), holders_(thread) {}

  void write(control_block& fiber, std::size_t depth = 0) {
    const std::string indent(2 * depth, ' ');
    output_ << indent;
    dump_line(output_, thread_, fiber, holders_, present_);
    output_ << '\n';
    if (!stacks_) return;
    const auto frames = frames_of(thread_, fiber, buffer_);
    if (frames.empty()) {
      output_ << indent
              << (has_begun(fiber.resume_context) ? "  its stack is not known\n"
                                                  : "  not started\n");
    }
    for (const void* frame : frames) output_ << indent << "  " << names_.of(frame) << '\n';
  }

 private:
  thread_state& thread_;
  std::ostream& output_;
  const bool stacks_;
  const clock::time_point present_ = thread_.kernel().now();
  frame_names names_;
  lock_holders holders_;
  std::array<void*, most_frames> buffer_;
};

}  // namespace

void dump_fibers(thread_state& thread, std::ostream& output, bool stacks) {
  fiber_lines lines(thread, output, stacks);
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    lines.write(*fiber);
  }
}

void dump_tree(thread_state& thread, std::ostream& output, bool stacks) {
  struct level {
    family* group;
    control_block* next;  // of its children
  };
  fiber_lines lines(thread, output, stacks);
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
      deepest.next = deepest.group->children.next(*child);
      lines.write(*child, std::max<std::size_t>(path.size(), 2) - 1);
      if (cold_part* part = cold_if_any(*child)) enter(part->own_family);
    } else if (deepest.group->next != nullptr) {
      deepest = {deepest.group->next, deepest.group->next->children.front()};
    } else {
      path.pop_back();
    }
  }
}

void dump(thread_state& thread, std::ostream& output, const dump_options& options) {
  if (options.json) return dump_json(thread, output, options);
  if (options.group_by_site) return dump_groups(thread, output, options);
  if (options.tree) return dump_tree(thread, output, options.stacks);
  dump_fibers(thread, output, options.stacks);
}

}}}  // namespace motet::MOTET_ABI::detail
