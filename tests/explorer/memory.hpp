// SPDX-License-Identifier: MIT
// The memory model of C++20 for one execution: which stores a load may read. The stores of a
// location are ordered as they are executed: what only another modification order permits, such as
// load buffering, is not found.
// Source: [intro.races], [atomics.order]; "views" as in Kang et al., A promising semantics, 2017.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace explorer {

constexpr std::size_t most_threads = 6;  // with the model's main one
constexpr std::size_t most_locations = 128;

inline bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
inline bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

/// What happened before some point: the newest known store of each location, and of each thread how
/// many of its releases, by which its accesses to plain variables are dated.
struct knowledge {
  std::array<std::uint16_t, most_locations> newest{};
  std::array<std::uint32_t, most_threads> epochs{};

  void join_stores(const knowledge& other) {
    for (std::size_t i = 0; i < most_locations; ++i) {
      newest[i] = std::max(newest[i], other.newest[i]);
    }
  }
  void join(const knowledge& other) {
    join_stores(other);
    for (std::size_t i = 0; i < most_threads; ++i) epochs[i] = std::max(epochs[i], other.epochs[i]);
  }
};

/// A variable that is not atomic: the last write, and the reads since.
struct plain_history {
  std::size_t writer = 0;
  std::uint32_t written_at = 0;
  std::array<std::uint32_t, most_threads> read_at{};
};

class memory {
 public:
  memory() {
    for (std::size_t i = 0; i < most_threads; ++i) threads_[i].known.epochs[i] = 1;
  }

  bool is_full() const { return locations_.size() == most_locations; }
  std::size_t new_location(std::uint64_t value) {
    if (is_full()) throw std::length_error("explorer: too many atomics");
    locations_.emplace_back();
    locations_.back().push_back({value, {}});  // an initial value is not released
    return locations_.size() - 1;
  }

  std::size_t newest(std::size_t location) const { return locations_[location].size() - 1; }
  /// Returns: the oldest store that a load may read.
  std::size_t oldest(std::size_t thread, std::size_t location, std::memory_order order) const {
    const std::uint16_t known = threads_[thread].known.newest[location];
    if (order != std::memory_order_seq_cst) return known;
    return std::max(known, sequential_.newest[location]);
  }
  std::uint64_t value(std::size_t location, std::size_t index) const {
    return locations_[location][index].value;
  }

  void load(std::size_t thread, std::size_t location, std::size_t index, std::memory_order order) {
    state& own = threads_[thread];
    const auto position = static_cast<std::uint16_t>(index);
    own.known.newest[location] = std::max(own.known.newest[location], position);
    const knowledge& message = locations_[location][index].message;
    own.to_acquire.join(message);
    if (acquires(order)) own.known.join(message);
    if (order == std::memory_order_seq_cst) note_sequential(location, position);
  }
  void store(std::size_t thread, std::size_t location, std::uint64_t value,
             std::memory_order order) {
    append(thread, location, value, order, knowledge());
  }
  /// Reads the newest store, and stores `value` right after it. The release sequence goes on.
  void update(std::size_t thread, std::size_t location, std::uint64_t value,
              std::memory_order order) {
    load(thread, location, newest(location), order);
    append(thread, location, value, order, knowledge(locations_[location].back().message));
  }

  void fence(std::size_t thread, std::memory_order order) {
    state& own = threads_[thread];
    if (acquires(order)) own.known.join(own.to_acquire);
    if (order == std::memory_order_seq_cst) {
      own.known.join_stores(sequential_);
      sequential_.join_stores(own.known);
    }
    if (releases(order)) own.released = own.known;
    ++own.known.epochs[thread];
  }

  /// What `child` does happens after what `parent` has done; or the reverse, once it has ended.
  void begin(std::size_t parent, std::size_t child) { synchronize(parent, child); }
  void join(std::size_t parent, std::size_t child) { synchronize(child, parent); }
  void acquire(std::size_t thread, const knowledge& from) { threads_[thread].known.join(from); }
  void release(std::size_t thread, knowledge& into) {
    into.join(threads_[thread].known);
    ++threads_[thread].known.epochs[thread];
  }

  /// Returns: false for a data race.
  bool read(std::size_t thread, plain_history& variable) {
    const knowledge& known = threads_[thread].known;
    variable.read_at[thread] = known.epochs[thread];
    return known.epochs[variable.writer] >= variable.written_at || variable.writer == thread;
  }
  bool write(std::size_t thread, plain_history& variable) {
    const knowledge& known = threads_[thread].known;
    bool ordered = read(thread, variable);
    for (std::size_t i = 0; i < most_threads; ++i) {
      ordered = ordered && (i == thread || known.epochs[i] >= variable.read_at[i]);
    }
    variable = {thread, known.epochs[thread], {}};
    return ordered;
  }

 private:
  struct stored {
    std::uint64_t value;
    knowledge message;  // what a thread that acquires it then knows
  };
  struct state {
    knowledge known;
    knowledge released;    // what was known at the last release fence
    knowledge to_acquire;  // of relaxed loads, for an acquire fence
  };

  void append(std::size_t thread, std::size_t location, std::uint64_t value,
              std::memory_order order, knowledge message) {
    state& own = threads_[thread];
    const auto position = static_cast<std::uint16_t>(locations_[location].size());
    own.known.newest[location] = position;
    message.join(releases(order) ? own.known : own.released);
    message.newest[location] = position;
    locations_[location].push_back({value, std::move(message)});
    ++own.known.epochs[thread];
    if (order == std::memory_order_seq_cst) note_sequential(location, position);
  }
  void note_sequential(std::size_t location, std::uint16_t position) {
    sequential_.newest[location] = std::max(sequential_.newest[location], position);
  }
  void synchronize(std::size_t earlier, std::size_t later) {
    threads_[later].known.join(threads_[earlier].known);
    ++threads_[earlier].known.epochs[earlier];
  }

  std::vector<std::vector<stored>> locations_;
  std::array<state, most_threads> threads_;
  knowledge sequential_;  // by what is sequentially consistent, so far
};

}  // namespace explorer
