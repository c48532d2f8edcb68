// SPDX-License-Identifier: MIT
// Counts the fibers that wait for work of a thread outside of the runtime. Virtual time, which
// jumps when nothing else can happen, must not jump then: it keeps pace with real time.
#pragma once

#include <atomic>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Lives while a fiber waits for such work.
class remote_work {
 public:
  remote_work() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  remote_work(const remote_work&) = delete;
  remote_work& operator=(const remote_work&) = delete;
  ~remote_work() { count_.fetch_sub(1, std::memory_order_relaxed); }

  /// Returns: whether any fiber of the process waits for such work.
  static bool under_way() noexcept { return count_.load(std::memory_order_relaxed) > 0; }
  /// Called in a forked child, in which no fiber waits.
  static void abandon() noexcept { count_.store(0, std::memory_order_relaxed); }

 private:
  static inline constinit atomic<std::size_t> count_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
