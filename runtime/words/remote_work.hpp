// SPDX-License-Identifier: MIT
// That something is done by a thread outside of the runtime while a fiber waits for it. Virtual
// time, which jumps when nothing else can happen, must not then: it goes as fast as the world does.
#pragma once

#include <atomic>
#include <cstddef>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Stands while a fiber waits for such work.
class work_elsewhere {
 public:
  work_elsewhere() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  work_elsewhere(const work_elsewhere&) = delete;
  work_elsewhere& operator=(const work_elsewhere&) = delete;
  ~work_elsewhere() { count_.fetch_sub(1, std::memory_order_relaxed); }

  /// Returns: whether any fiber of the process does.
  static bool under_way() noexcept { return count_.load(std::memory_order_relaxed) > 0; }
  /// In a forked child nobody waits.
  static void abandon() noexcept { count_.store(0, std::memory_order_relaxed); }

 private:
  static inline constinit std::atomic<std::size_t> count_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
