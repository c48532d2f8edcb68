// SPDX-License-Identifier: MIT
// An event that is set once, for threads without fibers.
#pragma once

#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class one_shot_event {
 public:
  void wait() noexcept;
  /// Blocks until `deadline` at the longest.
  /// Returns: whether it is set.
  bool wait_until(clock::time_point deadline) noexcept;
  /// Lets the waiting thread through, and with that perhaps ends the lifetime of this.
  void set() noexcept;

 private:
  atomic<std::uint32_t> flag_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
