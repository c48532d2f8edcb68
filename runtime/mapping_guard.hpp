// SPDX-License-Identifier: MIT
// Held while a ring is mapped or unmapped. ThreadSanitizer sees neither, and would take the memory
// of a new ring for that of an old one which stood at the same address, on another thread.
#pragma once

#include <motet/detail/abi.hpp>

#if defined(MOTET_TSAN)
#include <mutex>
#endif

namespace motet::inline MOTET_ABI::detail {

class mapping_guard {
 public:
  mapping_guard(const mapping_guard&) = delete;
  mapping_guard& operator=(const mapping_guard&) = delete;
#if defined(MOTET_TSAN)
  mapping_guard() { lock().lock(); }
  ~mapping_guard() { lock().unlock(); }

 private:
  static std::mutex& lock() {
    static std::mutex one_at_a_time;
    return one_at_a_time;
  }
#else
  mapping_guard() {}
  ~mapping_guard() {}
#endif
};

}  // namespace motet::inline MOTET_ABI::detail
