// SPDX-License-Identifier: MIT
// Timers in the order in which they are due: a 4-ary heap whose elements know their own place, so
// that any of them can be taken out. Timers of one instant fire in the order in which they were
// set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/timer.hpp>
#include <vector>

namespace motet::inline MOTET_ABI::detail {

class timer_heap {
 public:
  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }

  /// Makes room for `count` timers in all, so that push() need not allocate.
  /// Throws: std::bad_alloc; nothing has changed then.
  void reserve(std::size_t count) {
    if (count > entries_.capacity()) entries_.reserve(count * 2);
  }

  /// Returns: the one due first, or null.
  timer* first() const noexcept { return entries_.empty() ? nullptr : entries_.front().item; }

  void push(timer& item) {
    item.order = next_order_++;
    entries_.push_back({item.due, &item});
    item.place = entries_.size() - 1;
    sift_up(item.place);
  }

  /// Forgets all timers but those of `fiber`, without a look at them.
  void keep_those_of(const control_block& fiber) noexcept {
    std::erase_if(entries_, [&](const entry& each) { return each.item->fiber != &fiber; });
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].item->place = i;
    for (std::size_t i = entries_.size(); i-- > 0;) sift_down(i);
  }

  /// Takes `item` out; does nothing if it is not in.
  void remove(timer& item) noexcept {
    if (!item.armed()) return;
    const std::size_t hole = item.place;
    item.place = timer::nowhere;
    const entry last = entries_.back();
    entries_.pop_back();
    if (hole == entries_.size()) return;
    put(hole, last);
    restore(hole);
  }

  /// Moves `item`, which is in, to where its changed `due` belongs.
  void update(timer& item) noexcept {
    entries_[item.place].due = item.due;
    restore(item.place);
  }

 private:
  struct entry {
    clock::time_point due;
    timer* item;
  };

  static constexpr std::size_t arity = 4;

  static bool before(const entry& a, const entry& b) noexcept {
    return a.due != b.due ? a.due < b.due : a.item->order < b.item->order;
  }

  void put(std::size_t place, const entry& what) noexcept {
    entries_[place] = what;
    what.item->place = place;
  }

  /// An element moved into a hole may belong above it as well as below.
  void restore(std::size_t place) noexcept {
    timer* moved = entries_[place].item;
    sift_up(place);
    sift_down(moved->place);
  }

  void sift_up(std::size_t place) noexcept {
    const entry rising = entries_[place];
    while (place > 0) {
      const std::size_t parent = (place - 1) / arity;
      if (!before(rising, entries_[parent])) break;
      put(place, entries_[parent]);
      place = parent;
    }
    put(place, rising);
  }

  void sift_down(std::size_t place) noexcept {
    const entry sinking = entries_[place];
    for (;;) {
      const std::size_t smallest = smallest_child(place);
      if (smallest >= entries_.size() || !before(entries_[smallest], sinking)) break;
      put(place, entries_[smallest]);
      place = smallest;
    }
    put(place, sinking);
  }

  std::size_t smallest_child(std::size_t place) const noexcept {
    const std::size_t first = place * arity + 1;
    std::size_t smallest = first;
    for (std::size_t child = first + 1; child < first + arity && child < entries_.size(); ++child) {
      if (before(entries_[child], entries_[smallest])) smallest = child;
    }
    return smallest;
  }

  std::vector<entry> entries_;
  std::uint64_t next_order_ = 0;
};

}  // namespace motet::inline MOTET_ABI::detail
