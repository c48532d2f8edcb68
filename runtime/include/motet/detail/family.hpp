// SPDX-License-Identifier: MIT
// The fibers that must be over before a fiber, or one of its groups, is.
#pragma once

#include <cstddef>
#include <motet/detail/list.hpp>

namespace motet::inline MOTET_ABI::detail {

struct control_block;
struct wait_record;
struct children_tag;

struct family {
  control_block* owner = nullptr;
  list<control_block, children_tag> children;
  /// Children that are not transient; how many there are in all.
  std::size_t lasting = 0;
  std::size_t size = 0;
  /// The owner, waiting for `lasting` (or, if `wait_for_all`, `size`) to become 0.
  wait_record* waiter = nullptr;
  bool wait_for_all = false;
  /// A group's: the first failure cancels the rest, and await_all() collects it itself.
  bool one_fails_all_fail = false;
  bool failing = false;
  /// Nothing can be spun here any more.
  bool closed = false;
  /// The owner's next family.
  family* next = nullptr;
};

}  // namespace motet::inline MOTET_ABI::detail
