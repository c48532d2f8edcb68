// SPDX-License-Identifier: MIT
// The runnable fibers of a thread, first in, first out. Linked in one direction, so that taking one
// touches no other. The links are in the fibers, as `queued_behind`.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename Fiber>
class run_queue {
 public:
  run_queue() = default;
  run_queue(const run_queue&) = delete;
  run_queue& operator=(const run_queue&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  Fiber* front() const noexcept { return first_; }

  void push_back(Fiber& fiber) noexcept {
    fiber.queued_behind = nullptr;
    *end_ = &fiber;
    end_ = &fiber.queued_behind;
    ++size_;
  }

  /// The queue must not be empty.
  Fiber& pop_front() noexcept {
    Fiber& first = *first_;
    first_ = first.queued_behind;
    if (first_ == nullptr) end_ = &first_;
    --size_;
    return first;
  }

  /// Returns: the fiber a few places behind the front, or null. To stay that far behind it, this
  /// must be called after each pop_front().
  Fiber* look_ahead() noexcept {
    if (ahead_ != nullptr) {
      ahead_ = ahead_->queued_behind;
    } else {
      ahead_ = first_;
      for (int i = 1; i < prefetch_distance && ahead_ != nullptr; ++i)
        ahead_ = ahead_->queued_behind;
    }
    return ahead_;
  }
  /// Called when look_ahead() was not called after a pop_front().
  void look_no_further() noexcept { ahead_ = nullptr; }

  void remove(Fiber& fiber) noexcept {
    for (std::size_t remaining = size_; remaining > 0; --remaining) {
      Fiber& next = pop_front();
      if (&next != &fiber) push_back(next);
    }
    look_no_further();
  }
  /// In a forked child: empties the queue without touching the fibers.
  void abandon() noexcept {
    first_ = ahead_ = nullptr;
    end_ = &first_;
    size_ = 0;
  }

 private:
  /// How many switches take as long as an access to memory.
  static constexpr int prefetch_distance = 4;

  Fiber* first_ = nullptr;
  Fiber** end_ = &first_;  // the link to which the next one is attached
  std::size_t size_ = 0;
  Fiber* ahead_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
