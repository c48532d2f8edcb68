// SPDX-License-Identifier: MIT
// A gate at which a thread without fibers blocks until the gate is opened, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class one_shot_event {
 public:
  void wait() noexcept;
  /// Blocks until `when` at the longest.
  /// Returns: whether the gate is open.
  bool wait_until(clock::time_point when) noexcept;
  /// Lets the waiting thread through, and with that perhaps ends the lifetime of this.
  void open() noexcept;

 private:
  std::atomic<std::uint32_t> open_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
