// SPDX-License-Identifier: MIT
// All timers of a thread. Most are deadlines of waits that end in time, and are taken out soon: the
// newest few have a heap of their own, which stays small and in the cache however many others there
// are. Timers of one instant fire in the order in which they were set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heart/time/timer_heap.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class timer_queue {
 public:
  timer_queue() { young_.reserve(most_young); }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  /// Makes room for `count` timers in all, so that push() need not allocate.
  /// Throws: std::bad_alloc; nothing has changed then.
  void reserve(std::size_t count) { old_.reserve(count); }

  /// Returns: the one due first, or null.
  timer* first() const noexcept {
    if (old_.empty()) [[likely]]
      return young_.first();
    timer* young = young_.first();
    timer* old = old_.first();
    return young == nullptr || timer_heap::before(*old, *young) ? old : young;
  }

  void push(timer& item) noexcept {
    if (young_.size() == most_young) [[unlikely]]
      make_one_old();
    item.order = next_order_++;
    item.young = true;
    young_.push(item);
    ++size_;
  }

  /// Takes `item` out; does nothing if it is not in.
  void remove(timer& item) noexcept {
    if (!item.armed()) return;
    heap_of(item).remove(item);
    --size_;
  }

  /// Moves `item`, which is in, to where its changed `due` belongs.
  void update(timer& item) noexcept { heap_of(item).update(item); }

  /// Forgets all timers but those of `fiber`, without a look at them.
  void keep_those_of(const control_block& fiber) noexcept {
    young_.keep_those_of(fiber);
    old_.keep_those_of(fiber);
    size_ = young_.size() + old_.size();
  }

 private:
  static constexpr std::size_t most_young = 128;

  timer_heap& heap_of(const timer& item) noexcept { return item.young ? young_ : old_; }

  void make_one_old() noexcept {
    timer& chosen = young_.take_leaf();
    chosen.young = false;
    old_.push(chosen);
  }

  timer_heap young_, old_;
  std::size_t size_ = 0;  // of both: every poll asks whether there is any
  std::uint64_t next_order_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
