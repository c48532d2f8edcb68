// SPDX-License-Identifier: MIT
// What is known of each fiber of a thread at one point of its records, found by its number: an open
// table, because there is a look-up or two for each of millions of records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace_reader.hpp"

namespace motet_trace {

constexpr std::int64_t no_time = INT64_MIN;

struct fiber_state {
  std::uint64_t number = 0;      // 0: a free slot
  std::uint64_t waker = 0;       // the id of the fiber that has woken it; 0: none
  std::size_t waker_thread = 0;  // which one
  std::int64_t waker_at = no_time;
  std::uint64_t subject = 0;
  std::int64_t parked_at = no_time;  // while it waits
  std::int64_t woken_at = no_time;   // while it stands in line
  std::uint64_t guest = 0;           // the traveller that runs as it; 0: none
  std::uint32_t name = 0;            // the text
  std::uint32_t wait_text = 0;       // the text of what it waits, or last waited, for
  std::uint32_t late_us = 0;
  format::cause cause = format::cause::fiber;
  bool of_object = false;
  bool of_lock = false;
  bool gave_way = false;     // it stands in line because it did
  bool interrupted = false;  // since it last ran
};

class fiber_table {
 public:
  fiber_table() : slots_(64) {}

  fiber_state& of(std::uint64_t number) {
    if (number == 0) return scratch_ = {};  // of a broken record
    if (2 * count_ >= slots_.size()) grow();
    fiber_state& slot = slot_of(number);
    if (slot.number == 0) {
      slot.number = number;
      ++count_;
    }
    return slot;
  }
  template <typename F>
  void each(F f) const {
    for (const fiber_state& slot : slots_) {
      if (slot.number != 0) f(slot);
    }
  }

 private:
  fiber_state& slot_of(std::uint64_t number) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t index = (number * 0x9e3779b97f4a7c15U >> 20) & mask;
    while (slots_[index].number != 0 && slots_[index].number != number) index = (index + 1) & mask;
    return slots_[index];
  }
  void grow() {
    std::vector<fiber_state> old(2 * slots_.size());
    old.swap(slots_);
    for (const fiber_state& slot : old) {
      if (slot.number != 0) slot_of(slot.number) = slot;
    }
  }

  std::vector<fiber_state> slots_;
  fiber_state scratch_;
  std::size_t count_ = 0;
};

}  // namespace motet_trace
