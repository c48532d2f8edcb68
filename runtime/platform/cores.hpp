// SPDX-License-Identifier: MIT
// How many processors this thread may run on, and how many threads with fibers are awake.
#pragma once

#include <atomic>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: how many processors this thread may run on, or, if that is less, how many the process's
///          control groups let it use; at least 1.
/// Source: sched_getaffinity(2); Linux, Documentation/admin-guide/cgroup-v2.rst, cpu.max.
std::size_t usable_cores() noexcept;

/// Threads with a runtime that do not sleep in a poll.
inline constinit atomic<std::size_t> awake_threads{0};

/// Counts one awake thread.
class awake_thread {
 public:
  awake_thread() noexcept { wake(); }
  awake_thread(const awake_thread&) = delete;
  awake_thread& operator=(const awake_thread&) = delete;
  ~awake_thread() { sleep(); }

  static void sleep() noexcept { awake_threads.fetch_sub(1, std::memory_order_relaxed); }
  static void wake() noexcept { awake_threads.fetch_add(1, std::memory_order_relaxed); }
};

/// The number of threads that take jobs.
inline constinit atomic<std::size_t> worker_threads{0};
/// The number of those that sleep until a job comes, and cannot wake another thread before. It is
/// too low, even below 0, for a moment while one falls asleep or is woken.
inline constinit atomic<std::ptrdiff_t> idle_workers{0};

/// Called in a forked child, which has none of these threads.
inline void count_threads_anew() noexcept {
  awake_threads.store(0);
  worker_threads.store(0);
  idle_workers.store(0);
}

}}}  // namespace motet::MOTET_ABI::detail
