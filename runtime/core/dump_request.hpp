// SPDX-License-Identifier: MIT
// The note that a signal has asked for a dump of a thread's fibers.
#pragma once

#include <atomic>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/platform/stack.hpp>

#include "core/thread_registry.hpp"
#include "platform/stack_pool.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class dump_request {
 public:
  /// Throws: std::bad_alloc.
  explicit dump_request(thread_state& thread) : thread_(thread), registration_(thread) {}
  dump_request(const dump_request&) = delete;
  dump_request& operator=(const dump_request&) = delete;

  /// In the signal handler, on the thread itself: describes the running fiber, and has the others
  /// dumped soon. `context`: what the handler was given.
  /// Returns: whether another thread had sent the signal on.
  bool answer(void* context) noexcept;
  bool wanted() const noexcept { return requests_.load(std::memory_order_relaxed); }
  /// Writes the dump, outside of the handler, where it may use memory.
  void write() noexcept;

  /// Called before any signal: the handler must know whether the main fiber is on its stack.
  void learn_own_stack() noexcept { own_stack_ = this_threads_stack(); }
  /// Returns: those in the thread's entry in the thread registry.
  thread_counters& counters() const noexcept { return registration_.counters(); }
  /// Returns: whether the stall monitor looks at the thread; also there.
  std::atomic<bool>& monitored() const noexcept { return registration_.monitored(); }
  /// Called in a forked child.
  void start_over() noexcept {
    requests_.store(false);
    registration_.start_over(thread_);
  }

 private:
  void report_running(void* context) const noexcept;
  const stack& stack_of(const control_block& fiber) const noexcept;

  thread_state& thread_;
  std::atomic<bool> requests_{false};  // set by a signal handler on this thread
  stack own_stack_;                    // the thread's; empty where no dump signal was chosen
  registered_thread registration_;
};

}}}  // namespace motet::MOTET_ABI::detail
