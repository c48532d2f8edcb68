// SPDX-License-Identifier: MIT
// A stream's descriptor that is closed on a thread which is not the one, or not the only one, that
// has used it. The other's backend may watch it still, which libev does not survive, and cannot be
// told: it may be busy for long.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/words/abi.hpp>
#include <mutex>
#include <shared_mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct closings_elsewhere {
  /// Held by a backend, with others, while it looks at descriptors that no operation is on.
  static inline std::shared_mutex lock;
  /// A backend that sees another number than before lets go of all such descriptors.
  static inline std::atomic<std::uint64_t> count{0};
};

/// Stands while somebody closes a descriptor that others may watch.
class closing_elsewhere {
 public:
  closing_elsewhere() : alone_(closings_elsewhere::lock) {
    closings_elsewhere::count.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::lock_guard<std::shared_mutex> alone_;
};

}}}  // namespace motet::MOTET_ABI::detail
