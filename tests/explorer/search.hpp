// SPDX-License-Identifier: MIT
// Depth-first search over the choices of an execution: which thread takes the next step, and which
// store a load reads. Each execution starts at the beginning and repeats the choices of its prefix.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "explorer/memory.hpp"

namespace explorer {

/// `other`: a change of what is no atomic, such as a mutex, a futex's queue or a descriptor.
enum class action : std::uint8_t { load, store, update, fence, other };

/// The next step of a thread.
struct intent {
  action kind = action::fence;
  const void* object = nullptr;  // the atomic, or whatever else the step is about
  bool sequential = false;       // memory_order_seq_cst
};

/// Whether the order of two steps makes no difference.
inline bool commute(const intent& a, const intent& b) {
  if (a.kind == action::fence || b.kind == action::fence) return !(a.sequential && b.sequential);
  if (a.object != b.object) return true;
  return a.kind == action::load && b.kind == action::load && !(a.sequential && b.sequential);
}

/// A set of threads, a bit for each.
using thread_set = std::uint32_t;

class search {
 public:
  using intents = std::array<intent, most_threads>;

  /// With a bound, a thread that could go on is interrupted at most so often in an execution.
  /// Without one, sleep sets leave out executions that differ only in the order of steps that
  /// commute; together the two could leave out too much.
  explicit search(std::optional<std::size_t> preemptions) : bound_(preemptions) {}

  void begin() {
    depth_ = 0;
    preemptions_ = 0;
    asleep_ = 0;
    is_repeated_ = true;
    is_redundant_ = is_limited_ = has_paused_ = false;
  }
  /// Returns: false if every execution has been explored.
  bool advance() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options.size()) {
      path_.pop_back();
    }
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  /// Returns: a number below `count`.
  std::size_t choose_value(std::size_t count) {
    if (count == 1 || is_cut()) return 0;
    if (depth_ == path_.size()) {
      path_.emplace_back();
      for (std::size_t i = 0; i < count; ++i) {
        path_.back().options.push_back(static_cast<std::uint8_t>(i));
      }
    }
    const node& here = path_[depth_++];
    is_repeated_ = is_repeated_ && here.enabled == 0 && here.options.size() == count;
    if (!is_repeated_) return 0;
    return here.options[here.taken];
  }

  /// Returns: a thread of `enabled`. `current` took the last step.
  std::size_t choose_thread(thread_set enabled, std::size_t current, const intents& next) {
    if (depth_ == path_.size() && !is_cut()) add_schedule(enabled, current);
    if (is_cut()) return next_without_choice(enabled, current);
    const node& here = path_[depth_++];
    is_repeated_ = is_repeated_ && here.enabled == enabled;
    if (!is_repeated_) return lowest(enabled);
    const std::size_t thread = here.options[here.taken];
    if (thread != current && contains(enabled, current)) ++preemptions_;
    if (!bound_) fall_asleep(here, next);
    return thread;
  }

  /// The calling thread has looked at an atomic in a loop.
  void note_pause() { has_paused_ = true; }
  /// The rest of the execution has one course: threads take turns when they pause or block.
  void cut() { is_limited_ = true; }
  /// Whether the execution repeats another one, but for the order of steps that commute.
  bool is_redundant() const { return is_redundant_; }
  /// Whether cut() was called, and other courses are not explored.
  bool is_limited() const { return is_limited_ && !is_redundant_; }
  /// Whether the execution has had the choices of its prefix. If not, the model depends on
  /// something other than the choices.
  bool is_repeated() const { return is_repeated_; }

 private:
  struct node {
    std::vector<std::uint8_t> options;
    std::size_t taken = 0;
    thread_set enabled = 0;  // of a choice of a thread
    thread_set asleep = 0;
  };

  static bool contains(thread_set set, std::size_t thread) { return ((set >> thread) & 1U) != 0; }

  void add_schedule(thread_set enabled, std::size_t current) {
    node fresh;
    fresh.enabled = enabled;
    fresh.asleep = asleep_;
    const bool may_go_on = contains(enabled, current);
    if (may_go_on && !contains(asleep_, current)) add_option(fresh, current);
    if (!(may_go_on && bound_ && preemptions_ == *bound_)) {
      for (std::size_t i = 0; i < most_threads; ++i) {
        if (i != current && contains(enabled & ~asleep_, i)) add_option(fresh, i);
      }
    }
    is_redundant_ = fresh.options.empty();
    if (!is_redundant_) path_.push_back(std::move(fresh));
  }
  bool is_cut() const { return is_redundant_ || is_limited_; }
  std::size_t next_without_choice(thread_set enabled, std::size_t current) {
    if (!std::exchange(has_paused_, false) && contains(enabled, current)) return current;
    const thread_set behind = enabled & ~((thread_set{2} << current) - 1);
    return lowest(behind != 0 ? behind : enabled);
  }
  static std::size_t lowest(thread_set set) {
    return static_cast<std::size_t>(std::countr_zero(set));
  }
  static void add_option(node& target, std::size_t thread) {
    target.options.push_back(static_cast<std::uint8_t>(thread));
  }

  /// Those that were explored in place of the chosen thread sleep until a step depends on theirs.
  void fall_asleep(const node& here, const intents& next) {
    const std::size_t thread = here.options[here.taken];
    thread_set candidates = here.asleep;
    for (std::size_t i = 0; i < here.taken; ++i) candidates |= thread_set{1} << here.options[i];
    asleep_ = 0;
    for (std::size_t i = 0; i < most_threads; ++i) {
      if (i != thread && contains(candidates, i) && commute(next[i], next[thread])) {
        asleep_ |= thread_set{1} << i;
      }
    }
  }

  const std::optional<std::size_t> bound_;
  std::vector<node> path_;
  std::size_t depth_ = 0;
  std::size_t preemptions_ = 0;
  thread_set asleep_ = 0;
  bool is_repeated_ = true;
  bool is_redundant_ = false;
  bool is_limited_ = false;
  bool has_paused_ = false;
};

}  // namespace explorer
