// SPDX-License-Identifier: MIT
// Which fibers of a thread own locks that have an owner, to the C library a thread: recursive and
// error-checking mutexes, and locks for writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A hash table in memory of its own, because an allocator may be the caller. An entry counts only
/// while the C library says that the thread owns the lock.
class lock_owners {
 public:
  /// Returns: null if there is no memory for the thread's table: then a lock belongs to all of the
  ///          thread's fibers.
  static lock_owners* of_thread() noexcept {
    return present_ != nullptr ? present_ : make_present();
  }

  /// Returns: the id of the fiber that owns the lock, if the thread does; 0 if it is not known.
  std::uint64_t owner_of(const void* address) const noexcept {
    const entry& found = entries_[place_of(address)];
    return found.address == address ? found.fiber : 0;
  }
  void set(const void* address, std::uint64_t fiber) noexcept;
  void forget(const void* address) noexcept;

 private:
  struct entry {
    const void* address;
    std::uint64_t fiber;
  };

  lock_owners() noexcept = default;
  [[gnu::noinline]] static lock_owners* make_present() noexcept;
  static void destroy(void* owners) noexcept;
  bool grow() noexcept;
  std::size_t place_of(const void* address) const noexcept;

  [[gnu::tls_model("initial-exec")]] static thread_local constinit lock_owners* present_;

  entry* entries_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two
  std::size_t count_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
