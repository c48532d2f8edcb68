// SPDX-License-Identifier: MIT
// What happened: for each thread the slices of its fibers, and how long they stood in line before
// these; which fibers had which names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fiber_table.hpp"
#include "trace_reader.hpp"

namespace motet_trace {

/// A fiber runs from `begin` to `end`.
struct slice {
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t fiber;      // its id
  std::uint32_t name;       // its name then
  std::uint32_t wait_text;  // the text that names the wait that follows
  format::kind ending;      // how it left: park, snooze, end, leave; none: it still ran at the end
};

/// A fiber was runnable from `begin` on and ran from `end` on.
struct delay {
  std::int64_t begin;  // when its timer was due, if that woke it
  std::int64_t end;
  std::uint64_t fiber;
  std::uint32_t name;  // its name then
  format::cause cause;
  bool gave_way;

  std::int64_t length() const noexcept { return end - begin; }
};

/// From the slice of a fiber to a slice of the fiber that it has woken, or spun.
struct arrow {
  std::size_t from_thread;
  std::int64_t begin;
  std::size_t to_thread;
  std::int64_t end;  // where the slice begins
};

/// Waits for one object, that fibers hand on.
struct contention {
  std::uint32_t wait_text = 0;
  std::size_t waits = 0;
  std::int64_t wait_time = 0, longest = 0;
  std::uint64_t keeper = 0;  // had it for longest while others waited
  std::int64_t hold_time = 0;
  std::int64_t owned_from = no_time;
};

struct thread_line {
  std::uint64_t thread = 0;
  std::int64_t begin = no_time, end = no_time;
  std::int64_t asleep = 0, run_time = 0;
  std::size_t sleeps = 0, polls = 0, spins = 0, ends = 0, interruptions = 0;
  std::vector<std::size_t> wakes = std::vector<std::size_t>(4);  // by cause
  std::vector<slice> slices;
  std::vector<delay> delays;         // the longest ones, in no order
  std::vector<fiber_state> waiters;  // at the end
};

struct fiber_name {
  std::uint32_t site = 0, name = 0;
};

/// What is looked for while the records are read.
struct wishes {
  bool arrows = false;
};

class timeline {
 public:
  explicit timeline(const trace_reader& trace, wishes choice = {});

  const trace_reader& trace() const noexcept { return trace_; }
  const std::vector<thread_line>& threads() const noexcept { return threads_; }
  const std::map<std::uint64_t, contention>& objects() const noexcept { return objects_; }
  const std::vector<arrow>& arrows() const noexcept { return arrows_; }
  /// Returns: 'fiber 812 (GET /x, spun at main.cpp:40)', or less if less is known. `name`: what it
  /// was called at the time; 0: its last name.
  std::string label(std::uint64_t fiber, std::uint32_t name = 0) const;
  /// Returns: 'GET /x (main.cpp:40)', or as label().
  std::string short_label(std::uint64_t fiber, std::uint32_t name = 0) const;
  /// Returns: the group to which the fiber belongs: its call site, else its name.
  std::string kind_of(std::uint64_t fiber) const;

 private:
  friend class thread_reading;

  struct posted {
    std::uint64_t fiber;
    std::int64_t time;
    std::uint64_t poster;
    std::size_t thread;
  };

  void learn_names_and_posts(std::size_t thread);
  /// Returns: the last post to `fiber` from `begin` to `end`; or null.
  const posted* post_to(std::uint64_t fiber, std::int64_t begin, std::int64_t end) const noexcept;

  const trace_reader& trace_;
  const wishes wishes_;
  std::unordered_map<std::uint64_t, fiber_name> names_;
  std::vector<posted> posts_;  // by fiber and time
  std::vector<thread_line> threads_;
  std::map<std::uint64_t, contention> objects_;
  std::vector<arrow> arrows_;
};

}  // namespace motet_trace
