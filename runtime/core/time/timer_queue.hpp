// SPDX-License-Identifier: MIT
// All timers of a thread. Most are deadlines of waits that end in time, so they are removed soon.
// The newest few have a heap of their own, which stays small and in the cache however many others
// there are. Timers of the same instant fire in the order in which they were set.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/core/timer.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Timers in the order of their deadlines: a 4-ary heap whose elements know their index, so that
/// any of them can be removed. Of timers of the same instant, the one with the lower number is
/// first.
class timer_heap {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  /// Ensures capacity for `count` timers in all, which push() needs.
  /// Throws: std::bad_alloc, without effect.
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<line[]>(1 + (count + 1) / 2);
    entry* entries = &larger[0].back();
    std::copy_n(entries_, size_, entries);
    lines_ = std::move(larger);
    entries_ = entries;
    capacity_ = count * 2;
  }

  /// Returns: the one due first, or null.
  timer* first() const noexcept { return empty() ? nullptr : entries_[0].item; }

  void push(timer& item) noexcept { sift_up(size_++, entry_of(item)); }

  /// Drops all timers except those of `fiber`, without accessing them.
  void retain_only(const control_block& fiber) noexcept {
    const std::size_t old_size = std::exchange(size_, 0);
    for (std::size_t i = 0; i < old_size; ++i) {
      const entry item = entries_[i];
      if (item.item->fiber == &fiber) sift_up(size_++, item);
    }
  }

  template <typename F>
  void each(F f) const {
    for (std::size_t i = 0; i < size_; ++i) f(*entries_[i].item);
  }

  /// Takes out a timer that is due last, or nearly: a leaf, on which no other timer depends.
  timer& take_leaf() noexcept { return *entries_[--size_].item; }

  /// Removes `item`, which must be in the queue.
  void remove(timer& item) noexcept {
    const std::size_t hole = item.index;
    item.index = timer::nowhere;
    const entry last = entries_[--size_];
    if (hole != size_) restore(hole, last);
  }

  /// Moves `item`, which is in, to where its changed `due` belongs.
  void update(timer& item) noexcept { restore(item.index, entry_of(item)); }

  /// Returns: whether `a` fires before `b`.
  static bool before(const timer& a, const timer& b) noexcept {
    return a.due != b.due ? a.due < b.due : a.order < b.order;
  }

 private:
  /// Trivial, so that room nobody needs yet is not touched.
  struct entry {
    clock::rep due;
    timer* item;
  };

  static constexpr std::size_t arity = 4;

  /// All children of one parent; the first line has but the root, at its end.
  struct alignas(64) line : std::array<entry, arity> {};

  static entry entry_of(timer& item) noexcept {
    return {item.due.time_since_epoch().count(), &item};
  }

  /// As for timers, which are seldom looked at.
  static bool before(const entry& a, const entry& b) noexcept {
    return a.due != b.due ? a.due < b.due : a.item->order < b.item->order;
  }

  void put(std::size_t index, const entry& item) noexcept {
    entries_[index] = item;
    item.item->index = index;
  }

  /// The entry that fills a hole may have to move up as well as down.
  void restore(std::size_t hole, entry item) noexcept {
    sift_up(hole, item);
    if (item.item->index == hole) sift_down(hole, item);
  }

  void sift_up(std::size_t hole, entry item) noexcept {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / arity;
      if (!before(item, entries_[parent])) break;
      put(hole, entries_[parent]);
      hole = parent;
    }
    put(hole, item);
  }

  void sift_down(std::size_t hole, entry item) noexcept {
    for (;;) {
      const std::size_t smallest = smallest_child(hole);
      if (smallest >= size_ || !before(entries_[smallest], item)) break;
      put(hole, entries_[smallest]);
      hole = smallest;
    }
    put(hole, item);
  }

  std::size_t smallest_child(std::size_t index) const noexcept {
    const std::size_t first = index * arity + 1;
    std::size_t smallest = first;
    for (std::size_t child = first + 1; child < std::min(first + arity, size_); ++child) {
      if (before(entries_[child], entries_[smallest])) smallest = child;
    }
    return smallest;
  }

  std::unique_ptr<line[]> lines_;
  entry* entries_ = nullptr;  // the root is first
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

class timer_queue {
 public:
  timer_queue() { young_.reserve(most_young); }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  /// Ensures capacity for `count` timers in all, so that push() need not allocate.
  /// Throws: std::bad_alloc, without effect.
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

  /// Removes `item`; no effect if it is not in the queue.
  void remove(timer& item) noexcept {
    if (!item.armed()) return;
    heap_of(item).remove(item);
    --size_;
  }

  /// Moves `item`, which is in, to where its changed `due` belongs.
  void update(timer& item) noexcept { heap_of(item).update(item); }

  /// Calls `f(timer)` for each, in no order.
  template <typename F>
  void each(F f) const {
    young_.each(f);
    old_.each(f);
  }

  /// Forgets all timers but those of `fiber`, without a look at them.
  void retain_only(const control_block& fiber) noexcept {
    young_.retain_only(fiber);
    old_.retain_only(fiber);
    size_ = young_.size() + old_.size();
  }

 private:
  static constexpr std::size_t most_young = 128;

  timer_heap& heap_of(const timer& item) noexcept { return item.young ? young_ : old_; }

  void make_one_old() noexcept {
    timer& first = young_.take_leaf();
    first.young = false;
    old_.push(first);
  }

  timer_heap young_, old_;
  std::size_t size_ = 0;  // of both: every poll asks whether there is any
  std::uint64_t next_order_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
