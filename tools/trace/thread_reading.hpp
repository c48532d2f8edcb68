// SPDX-License-Identifier: MIT
// Reads the records of one thread, and writes down what they mean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "timeline.hpp"

namespace motet_trace {

class thread_reading {
 public:
  thread_reading(timeline& all, std::size_t which)
      : all_(all), which_(which), from_(all.trace_.rings()[which]), line_(all.threads_[which]) {}

  void read();

 private:
  std::uint64_t id_of(std::uint64_t number) const noexcept { return from_.fibers | number; }
  std::uint64_t who_runs() const noexcept { return guest_ != 0 ? guest_ : id_of(running_); }
  void take(const record& each);
  void switch_from(const record& each);
  void begin_turn(std::uint64_t number, std::int64_t when);
  void end_turn(std::int64_t when, format::kind how, std::uint32_t what);
  void note_subject(const record& each);
  void wake(const record& each);
  void note_waker(fiber_state& woken, std::int64_t when);
  void spin(const record& each);
  void note_poll(const record& each);
  void come_or_go(const record& each);
  void note_delay(const fiber_state& fiber, std::int64_t when);
  void hand_over(const fiber_state& woken, std::int64_t when);

  timeline& all_;
  const std::size_t which_;
  const ring& from_;
  thread_line& line_;
  fiber_table fibers_;
  std::uint64_t running_ = 0;  // the number of the fiber whose turn it is; 0: none, or unknown
  std::uint64_t guest_ = 0;    // the id of the traveller that runs as it; 0: none
  std::uint32_t name_ = 0;     // the running fiber's name
  std::uint64_t parked_ = 0;   // the number of the fiber that has just parked
  std::int64_t turn_from_ = never;
  bool fresh_ = false;  // the fiber has done nothing in its turn yet
  std::int64_t asleep_from_ = never;
};

}  // namespace motet_trace
