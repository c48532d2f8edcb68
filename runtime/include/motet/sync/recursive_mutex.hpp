// SPDX-License-Identifier: MIT
// A mutex that its holder may lock again.
#pragma once

#include <cstddef>
#include <motet/sync/mutex.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_recursive_mutex {
 public:
  /// As mutex::lock(), but returns at once if the caller holds the mutex already.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the mutex is destroyed meanwhile.
  void lock() {
    if (mutex_.held_by(self_core())) {
      Sharing::enter();
    } else {
      mutex_.lock();
    }
    ++depth_;
  }

  /// Locks the mutex if it is free, or if the caller holds it already.
  /// Not a switchpoint.
  bool try_lock() {
    if (!mutex_.held_by(self_core()) && !mutex_.try_lock()) return false;
    ++depth_;
    return true;
  }

  /// Gives the mutex up once unlock() has been called as often as lock() and try_lock() took it.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if the caller does not hold the mutex.
  void unlock() {
    if (!mutex_.held_by(self_core())) refuse_to_unlock();
    if (--depth_ == 0) mutex_.unlock();
  }

  /// Returns: the mutex's state; takes time linear in the number of waiters. Not a switchpoint.
  lock_stats stats() { return mutex_.stats(); }

 private:
  basic_mutex<Sharing> mutex_;
  std::size_t depth_ = 0;  // touched by the holder alone
};

}  // namespace detail

using recursive_mutex = detail::basic_recursive_mutex<detail::shared_policy>;

namespace local {
using recursive_mutex = detail::basic_recursive_mutex<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
