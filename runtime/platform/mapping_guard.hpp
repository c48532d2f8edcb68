// SPDX-License-Identifier: MIT
// A lock that is held while a ring is mapped or unmapped. ThreadSanitizer sees neither, and would
// take the memory of a new ring for that of an old ring at the same address, on another thread.
#pragma once

#include <motet/detail/base/abi.hpp>

#if defined(MOTET_TSAN)
#include <mutex>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

class mapping_guard {
 public:
  mapping_guard(const mapping_guard&) = delete;
  mapping_guard& operator=(const mapping_guard&) = delete;
  mapping_guard() { lock(); }
  ~mapping_guard() { unlock(); }

#if defined(MOTET_TSAN)
  // Also called around a fork.
  static void lock() { one_at_a_time().lock(); }
  static void unlock() { one_at_a_time().unlock(); }

 private:
  static std::mutex& one_at_a_time() {
    static std::mutex mutex;
    return mutex;
  }
#else
  static void lock() {}
  static void unlock() {}
#endif
};

}}}  // namespace motet::MOTET_ABI::detail
