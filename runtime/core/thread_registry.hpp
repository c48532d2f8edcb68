// SPDX-License-Identifier: MIT
// The process's threads that have a runtime. Found without a lock, by a signal handler and by a
// debugger; so entries in it are used again, and never freed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <motet/detail/base/abi.hpp>

#include "core/counting/thread_counters.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

struct thread_entry {
  std::atomic<pid_t> thread{0};                 // the kernel's number of it; 0: the entry is free
  std::atomic<thread_state*> runtime{nullptr};  // the entry point of debuggers
  std::atomic<bool> dump_asked{false};          // another thread has sent it the dump signal
  std::atomic<bool> monitored{false};           // for stalls
  thread_counters counters;
  thread_entry* next = nullptr;
};

extern constinit std::atomic<thread_entry*> motet_thread_registry;

/// Calls `f(entry)` for each entry of a thread that has a runtime; none begins or ends meanwhile.
void for_each_runtime(const std::function<void(thread_entry&)>& f);
/// Adds what threads that have ended have counted to `sum`, and then does the same.
void read_counters(thread_counters& sum, const std::function<void(thread_entry&)>& f);

/// A runtime's entry, for as long as it lives.
class registered_thread {
 public:
  /// Throws: std::bad_alloc.
  explicit registered_thread(thread_state& runtime);
  registered_thread(const registered_thread&) = delete;
  registered_thread& operator=(const registered_thread&) = delete;
  ~registered_thread();

  // Round a fork.
  static void lock_all() noexcept;
  static void unlock_all() noexcept;
  // In a forked child: the other threads do not exist, and this thread has another id.
  static void abandon_all() noexcept;
  void start_over(thread_state& runtime) noexcept { enter(runtime); }
  thread_counters& counters() const noexcept { return entry_->counters; }
  std::atomic<bool>& monitored() const noexcept { return entry_->monitored; }
  /// Returns: whether another thread has sent the dump signal, once for each.
  bool take_dump_request() noexcept { return entry_->dump_asked.exchange(false); }

 private:
  void enter(thread_state& runtime) noexcept;

  thread_entry* entry_;
};

}}}  // namespace motet::MOTET_ABI::detail
