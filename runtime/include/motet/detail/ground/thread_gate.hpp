// SPDX-License-Identifier: MIT
// Where a thread without fibers waits: it blocks until it is let through, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/clock.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_gate {
 public:
  void wait() noexcept;
  /// Blocks until `when` at the longest.
  /// Returns: whether it has been let through.
  bool wait_until(clock::time_point when) noexcept;
  /// Lets it through, and with that perhaps ends the lifetime of this.
  void open() noexcept;

 private:
  std::atomic<std::uint32_t> open_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
