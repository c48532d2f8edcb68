// SPDX-License-Identifier: MIT
// A part of a fiber's body that a deadline can end. An object on the fiber's stack, with an
// identity that no later scope has.
#pragma once

#include <cstdint>
#include <motet/clock.hpp>
#include <motet/detail/timer_heap.hpp>
#include <motet/errors.hpp>

namespace motet::inline MOTET_ABI::detail {

struct control_block;

class scope {
 public:
  /// Enters a scope of the running fiber that ends after `limit`.
  /// Throws: std::bad_alloc before anything has happened.
  explicit scope(clock::duration limit);
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  /// Leaves it: from now on it can neither expire nor interrupt.
  ~scope();

  /// Returns: whether `c` was thrown because this very scope ended.
  bool caused(const cancelled& c) const noexcept { return interruption::scope_of(c) == id_; }

 private:
  friend struct control_block;
  friend class thread_state;
  static void expire(timer& alarm) noexcept;

  struct deadline_timer : timer {
    scope* owner = nullptr;
  };

  control_block* fiber_;
  scope* outer_;
  std::uint64_t id_;
  bool expired_ = false;
  bool delivered_ = false;
  deadline_timer alarm_;
};

}  // namespace motet::inline MOTET_ABI::detail
