// SPDX-License-Identifier: MIT
// The runnable fibers of a thread, first in, first out. Linked in one direction, so that taking one
// touches no other. The links are in the fibers, as `queued_behind`.
#pragma once

#include <cstddef>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename Fiber>
class run_queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  Fiber* front() const noexcept { return first_; }

  void push_back(Fiber& fiber) noexcept {
    fiber.queued_behind = nullptr;
    *(first_ == nullptr ? &first_ : &last_->queued_behind) = &fiber;
    last_ = &fiber;
    ++size_;
  }

  /// It must not be empty.
  Fiber& pop_front() noexcept {
    Fiber& taken = *first_;
    first_ = taken.queued_behind;
    --size_;
    return taken;
  }

  /// Returns: one that stays a few places behind the front from call to call, if it is called after
  /// each pop_front(); or null.
  Fiber* look_ahead() noexcept {
    if (ahead_ != nullptr) {
      ahead_ = ahead_->queued_behind;
    } else {
      ahead_ = first_;
      for (int i = 1; i < places_ahead && ahead_ != nullptr; ++i) ahead_ = ahead_->queued_behind;
    }
    return ahead_;
  }
  /// The calls have been interrupted.
  void look_no_further() noexcept { ahead_ = nullptr; }

  void remove(Fiber& fiber) noexcept {
    run_queue others;
    while (!empty()) {
      Fiber& next = pop_front();
      if (&next != &fiber) others.push_back(next);
    }
    *this = others;
  }

 private:
  /// As far as the memory is away, in switches.
  static constexpr int places_ahead = 4;

  Fiber* first_ = nullptr;
  Fiber* last_ = nullptr;
  std::size_t size_ = 0;
  Fiber* ahead_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
