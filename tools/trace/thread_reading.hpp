// SPDX-License-Identifier: MIT
// Reads the records of one thread, and writes down what they mean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "timeline.hpp"

namespace motet_trace {

class thread_reading {
 public:
  thread_reading(timeline& history, std::size_t thread)
      : history_(history),
        thread_(thread),
        ring_(history.trace_.rings()[thread]),
        line_(history.threads_[thread]) {}

  void read();

 private:
  std::uint64_t id_of(std::uint64_t number) const noexcept { return ring_.fibers | number; }
  std::uint64_t who_runs() const noexcept { return guest_ != 0 ? guest_ : id_of(runner_); }
  void process(const record& event);
  void switch_from(const record& event);
  void begin_slice(std::uint64_t number, std::int64_t time);
  void end_slice(std::int64_t time, format::kind ending, std::uint32_t wait_text);
  void note_subject(const record& event);
  void wake(const record& event);
  void note_waker(fiber_state& fiber, std::int64_t time);
  void spin(const record& event);
  void note_poll(const record& event);
  void come_or_go(const record& event);
  void note_delay(const fiber_state& fiber, std::int64_t time);
  void hand_over(const fiber_state& fiber, std::int64_t time);

  timeline& history_;
  const std::size_t thread_;
  const ring& ring_;
  thread_line& line_;
  fiber_table fibers_;
  std::uint64_t runner_ = 0;  // the number of the fiber whose slice it is; 0: none, or unknown
  std::uint64_t guest_ = 0;   // the id of the traveller that runs as it; 0: none
  std::uint32_t name_ = 0;    // the running fiber's name
  std::uint64_t parked_fiber_ = 0;  // the number of the fiber that has just parked
  std::int64_t slice_from_ = no_time;
  bool fresh_ = false;  // the fiber has done nothing in its slice yet
  std::int64_t asleep_from_ = no_time;
};

}  // namespace motet_trace
