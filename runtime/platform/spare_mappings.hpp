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

/// `Limit`: how many it keeps.
template <std::size_t Limit = 8>
class spare_mappings {
 public:
  /// Returns: a cached mapping, with its old contents, or null.
  void* take() noexcept {
    for (std::atomic<void*>& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (void* mapping = slot.exchange(nullptr, std::memory_order_acquire)) return mapping;
    }
    return nullptr;
  }
  /// Returns: false if enough mappings are cached; the caller keeps `memory`.
  bool put(void* memory) noexcept {
    if constexpr (faults::enabled) return false;  // calls of mmap(2) must not depend on the past
    for (std::atomic<void*>& slot : slots_) {
      void* no_mapping = nullptr;
      if (slot.compare_exchange_strong(no_mapping, memory, std::memory_order_release)) return true;
    }
    return false;
  }

 private:
  std::array<std::atomic<void*>, Limit> slots_{};
};

}}}  // namespace motet::MOTET_ABI::detail
