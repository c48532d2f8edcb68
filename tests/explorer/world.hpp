// SPDX-License-Identifier: MIT
// One execution of a model: its threads are contexts, of which one at a time runs from one step to
// the next. A step is an access to an atomic, a fence, or a call on a mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/detail/platform/context.hpp>
#include <string>
#include <utility>
#include <vector>

#include "explorer/memory.hpp"
#include "explorer/search.hpp"
#include "platform/stack_pool.hpp"

namespace explorer {

/// A step, as a failure reports it.
struct event {
  std::size_t thread;
  const char* name;
  std::size_t object;
  std::uint64_t value;

  std::string text() const {
    return "thread " + std::to_string(thread) + ": " + name + ' ' + std::to_string(object) + ", " +
           std::to_string(value) + '\n';
  }
};

class world {
 public:
  explicit world(search& choices, motet::detail::stack_pool& stacks, std::size_t most_steps)
      : choices_(choices), stacks_(stacks), most_steps_(most_steps) {
    current() = this;
    const motet::detail::stack own = motet::detail::this_threads_stack();
    motet::detail::sanitizer::describe(home_.shadow, own.bottom, own.size(), false);
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() {
    for (std::size_t i = 1; i < count_; ++i) {
      const motet::detail::stack& region = threads_[i].region;
      motet::detail::sanitizer::forget(threads_[i].place.shadow, region.bottom, region.size());
      stacks_.give_back(region);
    }
    current() = nullptr;
  }

  /// The execution that goes on.
  static world*& current() {
    static world* value = nullptr;
    return value;
  }

  // For models.

  void add_thread(std::function<void()> body) {
    if (count_ == most_threads) throw std::length_error("explorer: too many threads");
    thread& fresh = threads_[count_];
    fresh.body = std::move(body);
    fresh.number = count_;
    fresh.region = stacks_.take(motet::detail::stack_pool::default_size);
    motet::detail::lay_out(fresh.place, fresh.region.top, &enter, &fresh);
    motet::detail::sanitizer::describe(fresh.place.shadow, fresh.region.bottom, fresh.region.size(),
                                       true);
    history.begin(0, count_);
    ++count_;
  }

  /// Runs the threads until all have ended, or none can go on.
  void run() {
    for (std::size_t i = 1; i < count_; ++i) resume(i);  // to its first step
    running_ = 0;
    while (!failed()) {
      const thread_set enabled = enabled_threads();
      if (enabled == 0) break;
      running_ = choices_.choose_thread(enabled, running_, next_);
      if (++steps_ > most_steps_) fail("more steps than an execution may have");
      resume(running_);
    }
    running_ = 0;
    for (std::size_t i = 1; i < count_ && !failed(); ++i) {
      if (!threads_[i].over) fail("a deadlock: thread " + std::to_string(i) + " waits for ever");
      history.join(0, i);
    }
  }

  void fail(std::string message) {
    if (failure_.empty()) failure_ = std::move(message);
  }
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  const std::vector<event>& events() const { return events_; }

  // For atomics, mutexes and plain variables.

  memory history;

  std::size_t thread_number() const { return running_; }
  bool alone() const { return running_ == 0; }
  std::size_t choose(std::size_t count) { return choices_.choose_value(count); }
  void note(const char* name, std::size_t object, std::uint64_t value) {
    events_.push_back({running_, name, object, value});
  }

  /// Lets other threads take their steps before this thread takes one. The main thread runs alone.
  void before(const intent& step) {
    if (alone()) return;
    next_[running_] = step;
    yield();
    if (step.kind == action::load) return;
    ++changes_;
    wake(&changes_);
    threads_[running_].takes_newest = false;
  }
  /// The calling thread cannot go on until wake() is called for `object`.
  void block(const void* object) {
    threads_[running_].waits_for = object;
    yield();
  }
  void wake(const void* object) {
    for (thread& one : threads_) {
      if (one.waits_for == object) one.waits_for = nullptr;
    }
  }
  /// The same for one of the threads that wait for `object`, whichever.
  void wake_one(const void* object) {
    std::array<thread*, most_threads> waiting{};
    std::size_t count = 0;
    for (thread& one : threads_) {
      if (one.waits_for == object) waiting[count++] = &one;
    }
    if (count > 0) waiting[choose(count)]->waits_for = nullptr;
  }
  /// The calling thread waits in a loop. Loads do not stay stale for ever: the loop reads the
  /// newest stores once more, and then waits for a step of another thread.
  void pause() {
    if (alone()) return;
    thread& self = threads_[running_];
    self.takes_newest = true;
    if (std::exchange(self.paused_at, changes_) == changes_) block(&changes_);
    self.paused_at = changes_;
  }
  bool takes_newest() const { return alone() || threads_[running_].takes_newest; }

  std::size_t new_mutex() { return mutexes_++; }

 private:
  struct thread {
    std::size_t number = 0;
    std::function<void()> body;
    motet::detail::context place;
    motet::detail::stack region;
    const void* waits_for = nullptr;
    std::size_t paused_at = 0;  // after so many changes
    bool takes_newest = false;
    bool over = false;
  };

  static void enter(void* argument) {
    auto& self = *static_cast<thread*>(argument);
    motet::detail::sanitizer::after_switch(self.place.shadow);
    self.body();
    self.over = true;
    motet::detail::load_context(current()->home_);
  }

  thread_set enabled_threads() const {
    thread_set result = 0;
    for (std::size_t i = 1; i < count_; ++i) {
      if (!threads_[i].over && threads_[i].waits_for == nullptr) result |= thread_set{1} << i;
    }
    return result;
  }
  void resume(std::size_t number) {
    running_ = number;
    motet::detail::switch_context(home_, threads_[number].place);
  }
  void yield() { motet::detail::switch_context(threads_[running_].place, home_); }

  search& choices_;
  motet::detail::stack_pool& stacks_;
  const std::size_t most_steps_;
  std::array<thread, most_threads> threads_;
  search::intents next_{};
  std::size_t count_ = 1;  // the main thread is number 0
  std::size_t running_ = 0;
  std::size_t steps_ = 0;
  std::size_t mutexes_ = 0;
  std::size_t changes_ = 1;
  motet::detail::context home_;
  std::string failure_;
  std::vector<event> events_;
};

}  // namespace explorer
