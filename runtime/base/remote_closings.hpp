// SPDX-License-Identifier: MIT
// Closing a stream's descriptor on one thread after another thread has used it. The other thread's
// backend may still watch the descriptor, which libev does not survive; and it cannot be asked to
// stop first, for the other thread may be busy for long.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <mutex>
#include <shared_mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct remote_closings {
  /// Held, shared, by each backend while it watches descriptors without an operation.
  static inline std::shared_mutex lock;
  /// A backend that sees another number than before stops to watch all such descriptors.
  static inline std::atomic<std::uint64_t> count{0};
};

/// Lives while a thread closes a descriptor that other threads' backends may watch.
class remote_closing {
 public:
  remote_closing() : alone_(remote_closings::lock) {
    remote_closings::count.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::lock_guard<std::shared_mutex> alone_;
};

}}}  // namespace motet::MOTET_ABI::detail
