// SPDX-License-Identifier: MIT
// The runnable fibers of a thread, first in, first out. Linked in one direction, so that taking one
// touches no other.
#pragma once

#include <cstddef>
#include <motet/detail/control_block.hpp>

namespace motet::inline MOTET_ABI::detail {

class run_queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  control_block* front() const noexcept { return first_; }

  void push_back(control_block& fiber) noexcept {
    fiber.queued_behind = nullptr;
    *(first_ == nullptr ? &first_ : &last_->queued_behind) = &fiber;
    last_ = &fiber;
    ++size_;
  }

  /// It must not be empty.
  control_block& pop_front() noexcept {
    control_block& taken = *first_;
    first_ = taken.queued_behind;
    --size_;
    return taken;
  }

  void remove(control_block& fiber) noexcept {
    run_queue others;
    while (!empty()) {
      control_block& next = pop_front();
      if (&next != &fiber) others.push_back(next);
    }
    *this = others;
  }

 private:
  control_block* first_ = nullptr;
  control_block* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace motet::inline MOTET_ABI::detail
