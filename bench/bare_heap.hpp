// SPDX-License-Identifier: MIT
// The least that keeps timers in order so that any can be taken out: a 4-ary heap of times and
// pointers, whose nodes know where they stand. Timers of one instant have no order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

class bare_heap {
 public:
  struct node {
    std::size_t place = 0;
  };

  void push(std::uint64_t due, node& item) {
    entries_.push_back({due, &item});
    rise(entries_.size() - 1, {due, &item});
  }

  void remove(node& item) noexcept {
    const std::size_t hole = item.place;
    const entry last = entries_.back();
    entries_.pop_back();
    if (hole == entries_.size()) return;
    if (hole > 0 && last.due < entries_[parent_of(hole)].due) {
      rise(hole, last);
    } else {
      sink(hole, last);
    }
  }

 private:
  struct entry {
    std::uint64_t due;
    node* item;
  };

  static std::size_t parent_of(std::size_t place) noexcept { return (place - 1) / 4; }

  void put(std::size_t place, entry what) noexcept {
    entries_[place] = what;
    what.item->place = place;
  }

  void rise(std::size_t place, entry what) noexcept {
    while (place > 0 && what.due < entries_[parent_of(place)].due) {
      put(place, entries_[parent_of(place)]);
      place = parent_of(place);
    }
    put(place, what);
  }

  void sink(std::size_t place, entry what) noexcept {
    for (;;) {
      const std::size_t first = place * 4 + 1;
      std::size_t least = first;
      for (std::size_t i = first + 1; i < first + 4 && i < entries_.size(); ++i) {
        if (entries_[i].due < entries_[least].due) least = i;
      }
      if (least >= entries_.size() || entries_[least].due >= what.due) break;
      put(place, entries_[least]);
      place = least;
    }
    put(place, what);
  }

  std::vector<entry> entries_;
};

}  // namespace bench
