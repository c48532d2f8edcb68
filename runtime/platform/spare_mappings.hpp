// SPDX-License-Identifier: MIT
// Keeps mappings of one size that are not in use, for the next user: to map and unmap memory takes
// longer than many a use of it. Any thread; without locks, so that a forked child finds the store
// in order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <motet/detail/base/abi.hpp>

#include "base/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class spare_mappings {
 public:
  /// Returns: a mapping that was kept, with its old contents, or null.
  void* take() noexcept {
    for (std::atomic<void*>& place : kept_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (void* found = place.exchange(nullptr, std::memory_order_acquire)) return found;
    }
    return nullptr;
  }
  /// Returns: false if enough mappings are kept; the caller keeps `memory`.
  bool keep(void* memory) noexcept {
    if constexpr (faults::enabled) return false;  // calls of mmap(2) must not depend on the past
    for (std::atomic<void*>& place : kept_) {
      void* none = nullptr;
      if (place.compare_exchange_strong(none, memory, std::memory_order_release)) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t most = 8;

  std::array<std::atomic<void*>, most> kept_{};
};

}}}  // namespace motet::MOTET_ABI::detail
