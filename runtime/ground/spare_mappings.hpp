// SPDX-License-Identifier: MIT
// Memory that was mapped, is not in use, and is kept for whoever wants as much of it next: to map
// it and to take it down takes longer than many a use. Any thread; without locks, so that a
// forked child finds it in order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <motet/detail/words/abi.hpp>

#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class spare_mappings {
 public:
  /// Returns: some that was kept, with whatever was written there, or null.
  void* take() noexcept {
    for (std::atomic<void*>& place : kept_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (void* found = place.exchange(nullptr, std::memory_order_acquire)) return found;
    }
    return nullptr;
  }
  /// Returns: false if it has enough; `memory` is the caller's still.
  bool keep(void* memory) noexcept {
    if constexpr (faults::enabled) return false;  // or what is mapped would depend on what was
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
