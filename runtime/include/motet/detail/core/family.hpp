// SPDX-License-Identifier: MIT
// The children of a fiber, or of one of its groups, which must end before it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <motet/detail/base/list.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/wait_record.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct slot_tag;

/// In the frame of a fiber that waits for a slot in a group.
struct slot_wait : tagged_link<slot_tag> {
  wait_record wait{"room in a group"};
  bool group_ended = false;
};

/// What an owner waits for.
enum class until : std::uint8_t {
  all_over,      // all children have ended
  lasting_over,  // only transient children are left
  news,          // the same; also woken by an end or a failure that next() reports
};

struct family {
  control_block* owner = nullptr;
  list<control_block, children_tag> children;
  /// The number of non-transient children; and of all.
  std::size_t lasting_count = 0;
  std::size_t size = 0;
  /// The owner's wait, and its condition.
  wait_record* owner_wait = nullptr;
  until waits_until = until::all_over;
  /// Is a group_family: the first failure cancels the rest, and its waiter collects it.
  bool is_group = false;
  bool failing = false;
  /// Accepts no more fibers.
  bool closed = false;
  /// The owner's next family.
  family* next = nullptr;

  bool satisfied(until goal) const noexcept {
    return (goal == until::all_over ? size : lasting_count) == 0;
  }
};

inline void join_family(control_block& child, family& group) noexcept {
  child.belongs_to = &group;
  group.children.push_back(child);
  ++group.size;
  if (!child.transient) ++group.lasting_count;
}

struct group_family : family {
  explicit group_family(std::size_t maximum) noexcept : limit(maximum) { is_group = true; }

  std::size_t limit;  // 0: none
  /// Its owner looks at how each of its fibers has ended: a failure cancels no other fiber, and is
  /// not reported.
  bool looked_after = false;
  /// Its owner has waited for its fibers, or has asked them to end.
  bool awaited = false;
  list<slot_wait, slot_tag> slot_waits;
  list<slot_wait, slot_tag> promisees;  // have a slot reserved, and are about to use it
  std::size_t promises = 0;
  /// Dead fibers, in the order in which they ended, for as long as there is a handle to them.
  list<control_block, children_tag> dead_fibers;
  /// In the last round with a failure; its other failures are kept as the dead fibers that failed.
  std::exception_ptr first_failure;
  control_block* other_failures = nullptr;
};

/// In a forked child: its fibers are the parent process's.
[[gnu::noinline]] inline void abandon(family& orphans) noexcept {
  orphans.children.abandon();
  orphans.size = orphans.lasting_count = 0;
  orphans.owner_wait = nullptr;
  orphans.failing = false;
  if (!orphans.is_group) return;
  auto& group = static_cast<group_family&>(orphans);
  while (group.dead_fibers.pop_front() != nullptr) {
  }
  group.slot_waits.abandon();
  group.promisees.abandon();
  group.promises = 0;
  group.other_failures = nullptr;
}

}}}  // namespace motet::MOTET_ABI::detail
