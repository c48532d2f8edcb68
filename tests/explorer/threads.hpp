// SPDX-License-Identifier: MIT
// The threads of a model: contexts, of which one at a time runs from one step to the next.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <motet/detail/platform/context.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "explorer/limits.hpp"
#include "explorer/memory.hpp"
#include "explorer/search.hpp"
#if defined(MOTET_EXPLORED)
#include "explorer/thread_locals.hpp"
#endif
#include "platform/stack_pool.hpp"

namespace explorer {

class threads {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  threads(search& choices, motet::detail::stack_pool& stacks, const limits& most)
      : choices_(choices), stacks_(stacks), most_(most) {
    static const motet::detail::stack own = motet::detail::this_threads_stack();  // a slow call
    motet::detail::sanitizer::describe(outside_.shadow, own.bottom, own.size(), false);
  }
  threads(const threads&) = delete;
  threads& operator=(const threads&) = delete;
  ~threads() {
    for (std::size_t i = 0; i < count_; ++i) {
      const motet::detail::stack& region = members_[i].region;
      motet::detail::sanitizer::forget(members_[i].place.shadow, region.bottom, region.size());
      stacks_.give_back(region);
    }
  }

  /// Runs `model` as the main thread, until it ends or an execution of the others has failed. Then
  /// all frames are left as they are.
  void begin(std::function<void()> model) {
    add(std::move(model));
    motet::detail::switch_context(outside_, members_[0].place);
  }
  /// Returns: the number of the new thread; the model's main one has the number 0.
  std::size_t add(std::function<void()> body) {
    if (count_ == most_threads) throw std::length_error("explorer: too many threads");
    thread& fresh = members_[count_];
    fresh.group = this;
    fresh.body = std::move(body);
    fresh.region = stacks_.take(motet::detail::stack_pool::default_size);
    motet::detail::lay_out(fresh.place, fresh.region.top, &enter, &fresh);
    motet::detail::sanitizer::describe(fresh.place.shadow, fresh.region.bottom, fresh.region.size(),
                                       true);
    return count_++;
  }
  std::size_t count() const { return count_; }
  /// The thread need not end.
  void detach(std::size_t number) { members_[number].daemon = true; }
  /// Waits for the end of a thread.
  void join(std::size_t number) {
    before({action::other, &members_[number], false});
    while (!members_[number].over) block(&members_[number]);
  }

  /// Runs all threads. Returns when they have ended, except daemons. What a thread does before its
  /// first step happens when it is begun.
  void run() {
    std::size_t begun = 1;
    std::size_t current = 0;
    while (!failed()) {
      while (begun < count_) resume(begun++);  // to its first step
      thread_set enabled = enabled_threads();
      if (enabled == 0 && let_time_pass()) enabled = enabled_threads();
      if (enabled == 0) break;
      current = choices_.choose_thread(enabled, current, next_);
      if (!choices_.is_repeated()) give_up("the model is not deterministic: its prefix differs");
      if (steps_++ == most_.steps) give_up("more steps than an execution may have");
      if (!failed()) resume(current);
    }
    for (std::size_t i = 1; i < count_ && !failed(); ++i) {
      if (members_[i].over || members_[i].daemon) continue;
      fail(("a deadlock: thread " + std::to_string(i) + " waits for ever").c_str());
    }
    if (failed()) motet::detail::load_context(outside_);
  }

  /// Ends the execution: a thread does not go on from here.
  void fail(const char* message) {
    if (failure_.empty()) failure_ = message;
    if (!alone()) yield();
  }
  /// The same, where the explorer and not the program is at fault.
  void give_up(const char* message) {
    is_inconclusive_ = is_inconclusive_ || !failed();
    fail(message);
  }
  bool failed() const { return !failure_.empty(); }
  bool is_inconclusive() const { return is_inconclusive_; }
  const std::string& failure() const { return failure_; }

  /// The number of the thread that runs.
  std::size_t running() const { return running_; }
  /// Whether that is the main thread, beside which no other runs.
  bool alone() const { return running_ == 0; }
  std::size_t choose(std::size_t count) { return choices_.choose_value(count); }

  /// Lets other threads take their steps before this thread takes one.
  void before(const intent& step) {
    if (alone()) return;
    next_[running_] = step;
    yield();
    if (step.kind == action::load) return;
    ++changes_;
    ++members_[running_].own_changes;
    wake(&changes_);
    members_[running_].takes_newest = false;
  }
  /// The calling thread cannot go on until wake() is called for `object`.
  void block(const void* object) {
    members_[running_].waits_for = object;
    yield();
  }
  /// The same, but not beyond `deadline`. Time passes only when no thread can go on.
  /// Returns: whether wake() was called.
  bool block_until(const void* object, time_point deadline) {
    members_[running_].deadline = deadline;
    block(object);
    return std::exchange(members_[running_].deadline, time_point::max()) != time_point::min();
  }
  time_point now() const { return now_; }
  void wake(const void* object) {
    for (thread& one : members_) {
      if (one.waits_for == object) one.waits_for = nullptr;
    }
  }
  /// The same for one of the threads that wait for `object`, whichever.
  void wake_one(const void* object) {
    std::array<thread*, most_threads> waiting{};
    std::size_t count = 0;
    for (thread& one : members_) {
      if (one.waits_for == object) waiting[count++] = &one;
    }
    if (count > 0) waiting[choose(count)]->waits_for = nullptr;
  }
  /// The calling thread waits in a loop. Loads do not stay stale for ever: the loop reads the
  /// newest stores once more, and then waits for a step of another thread, or until `deadline`.
  /// After limits::pauses pauses of one thread, only one course is explored.
  /// Returns: false if the deadline has passed.
  bool pause(time_point deadline) {
    if (alone()) return true;
    thread& self = members_[running_];
    choices_.note_pause();
    if (++self.pauses > most_.pauses) choices_.cut();
    self.takes_newest = true;
    const bool was_stale = std::exchange(self.has_read_stale, false);
    const bool waits = !was_stale && self.paused_at == changes_ - self.own_changes;
    const bool in_time = !waits || block_until(&changes_, deadline);
    self.paused_at = changes_ - self.own_changes;
    return in_time;
  }
  /// How often the running thread has changed something.
  std::size_t own_changes() const { return members_[running_].own_changes; }
  void note_stale() {
    ++stale_loads_;
    members_[running_].has_read_stale = true;
  }
  bool takes_newest() const {
    return alone() || members_[running_].takes_newest || stale_loads_ == most_.stale_loads;
  }

 private:
  struct thread {
    threads* group = nullptr;
    std::function<void()> body;
    motet::detail::context place;
    motet::detail::stack region;
    const void* waits_for = nullptr;
    time_point deadline = time_point::max();
    std::size_t pauses = 0;
    std::size_t own_changes = 0;
    std::size_t paused_at = 0;  // after so many changes of other threads
    bool takes_newest = false;
    bool has_read_stale = false;  // since its last pause
    bool over = false;
    bool daemon = false;  // may wait for ever
#if defined(MOTET_EXPLORED)
    thread_locals locals;
#endif
  };

  static void enter(void* argument) {
    auto& self = *static_cast<thread*>(argument);
    motet::detail::sanitizer::after_switch(self.place.shadow);
    threads& all = *self.group;
    try {
      self.body();
    } catch (const std::exception& error) {
      all.fail(error.what());
    } catch (...) {
      all.fail("an exception");
    }
    self.over = true;
    all.wake(&self);
    motet::detail::load_context(&self == &all.members_[0] ? all.outside_ : all.members_[0].place);
  }

  /// Returns: whether a thread has come to its deadline, which is `min()` then.
  bool let_time_pass() {
    thread* first = nullptr;
    for (std::size_t i = 1; i < count_; ++i) {
      thread& one = members_[i];
      if (one.over || one.waits_for == nullptr || one.deadline == time_point::max()) continue;
      if (first == nullptr || one.deadline < first->deadline) first = &one;
    }
    if (first == nullptr) return false;
    now_ = std::max(now_, std::exchange(first->deadline, time_point::min()));
    first->waits_for = nullptr;
    return true;
  }
  thread_set enabled_threads() const {
    thread_set result = 0;
    for (std::size_t i = 1; i < count_; ++i) {
      if (!members_[i].over && members_[i].waits_for == nullptr) result |= thread_set{1} << i;
    }
    return result;
  }
  void resume(std::size_t number) {
    running_ = number;
#if defined(MOTET_EXPLORED)
    members_[0].locals.save();
    members_[number].locals.restore();
#endif
    motet::detail::switch_context(members_[0].place, members_[number].place);
#if defined(MOTET_EXPLORED)
    members_[number].locals.save();
    members_[0].locals.restore();
#endif
    running_ = 0;
  }
  void yield() { motet::detail::switch_context(members_[running_].place, members_[0].place); }

  search& choices_;
  motet::detail::stack_pool& stacks_;
  const limits& most_;
  std::array<thread, most_threads> members_;
  search::intents next_{};
  time_point now_ = time_point(std::chrono::hours(1));
  std::size_t count_ = 0;
  std::size_t running_ = 0;
  std::size_t steps_ = 0;
  std::size_t stale_loads_ = 0;
  std::size_t changes_ = 1;
  motet::detail::context outside_;
  std::string failure_;
  bool is_inconclusive_ = false;
};

}  // namespace explorer
