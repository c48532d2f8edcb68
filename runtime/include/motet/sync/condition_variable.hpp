// SPDX-License-Identifier: MIT
// Waiting for a notification that the state which a lock guards has changed.
#pragma once

#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <motet/sync/notification.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_condition_variable {
 public:
  /// Unlocks `lock`, waits for a notification, and locks `lock` again, even if it throws. There
  /// are no spurious wakes. `lock` may be of any type that can be locked and unlocked,
  /// std::unique_lock<mutex> for example.
  /// Switchpoint.
  /// Throws: a pending interruption; what unlocking and locking throw; std::logic_error if
  ///         the condition variable is destroyed meanwhile, and then `lock` is not locked again.
  template <typename Lock>
  void wait(Lock& lock) {
    thread_core* thread = Sharing::enter_to_wait();
    single_wait node("wait on a condition_variable", this, thread, Sharing::shared);
    notification_.enter(node);
    try {
      lock.unlock();
    } catch (...) {
      withdraw(node);
      throw;
    }
    const bool notified = node.lone_waiter.park();
    if (node.lone_waiter.destroyed) throw_destroyed();  // and the mutex may be gone, too
    if (!notified) leave(notification_.sharing_, node, [] {});
    {
      const internal_shield safe;
      lock.lock();
    }
    if (!notified) throw_interruption();
  }

  /// Waits until `ready()`, which is called with `lock` locked, returns true.
  /// Switchpoint, if `ready()` is not true at once.
  /// Throws: as above, and what `ready` throws.
  template <typename Lock, typename Predicate>
  void wait(Lock& lock, Predicate ready) {
    while (!ready()) wait(lock);
  }

  /// Wakes the fiber or thread that has waited longest. A notification without a waiter is lost, so
  /// change the state before you notify. The lock may be held or not.
  /// Not a switchpoint. Any thread.
  void notify_one() { notification_.notify_one(); }

  /// Ends every wait that has begun, in order.
  /// Not a switchpoint. Any thread.
  void notify_all() { notification_.notify_all(); }

 private:
  /// Cancels a wait that has not begun; another thread may have notified it already.
  void withdraw(single_wait& node) {
    if (node.lone_waiter.wait.claim(wake_reason::interrupted)) {
      leave(notification_.sharing_, node, [] {});
      return;
    }
    const internal_shield safe;
    node.lone_waiter.park();
    if (!node.lone_waiter.destroyed) notify_one();
  }

  basic_notification<Sharing>
      notification_;  // its destructor ends every wait with a std::logic_error
};

}  // namespace detail

/// Between fibers and threads.
using condition_variable = detail::basic_condition_variable<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using condition_variable = detail::basic_condition_variable<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
