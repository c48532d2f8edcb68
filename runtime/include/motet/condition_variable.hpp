// SPDX-License-Identifier: MIT
// Waiting until somebody says that something about a locked thing has changed.
#pragma once

#include <motet/detail/heart/shelter.hpp>
#include <motet/detail/waiting/wait_list.hpp>
#include <motet/notification.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_condition_variable {
 public:
  /// Unlocks `held`, waits for a notification, and locks it again: also before it throws. Only a
  /// notification ends it. Of any type that can be locked and unlocked, std::unique_lock<mutex>
  /// above all.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; what unlocking and locking throw; std::logic_error if
  ///         the condition variable is destroyed meanwhile, and then `held` is not locked again.
  template <typename Lock>
  void wait(Lock& held) {
    thread_core* thread = Sharing::enter_to_wait();
    lone_waiter waiting("wait on a condition_variable", thread, Sharing::shared);
    changed_.enter(waiting);
    try {
      held.unlock();
    } catch (...) {
      withdraw(waiting);
      throw;
    }
    const bool told = waiting.own.stand_by();
    if (waiting.own.destroyed) throw_destroyed();  // what guards it may be gone as well
    if (!told) leave(changed_.sharing_, waiting, [] {});
    {
      const shelter safe;
      held.lock();
    }
    if (!told) throw_interruption();
  }

  /// Waits until `ready()`, which is called with `held` locked.
  /// Switchpoint, if it is not ready at once.
  /// Throws: as above, and what `ready` throws.
  template <typename Lock, typename Predicate>
  void wait(Lock& held, Predicate ready) {
    while (!ready()) wait(held);
  }

  /// Ends the wait of whoever has waited longest. Nothing is kept for who comes later, so change
  /// what they wait for first; whether `held` is locked meanwhile makes no difference.
  /// Not a switchpoint. Any thread.
  void notify_one() { changed_.notify_one(); }

  /// Ends every wait that has begun, in order.
  /// Not a switchpoint. Any thread.
  void notify_all() { changed_.notify_all(); }

 private:
  /// Takes back a wait that has not begun; another thread may have notified it by now.
  void withdraw(lone_waiter& waiting) {
    if (waiting.own.wait.claim(wake_reason::interrupted)) {
      leave(changed_.sharing_, waiting, [] {});
      return;
    }
    const shelter safe;
    waiting.own.stand_by();
    if (!waiting.own.destroyed) notify_one();
  }

  basic_notification<Sharing> changed_;  // sends away whoever waits at its end
};

}  // namespace detail

/// Between fibers and threads.
using condition_variable = detail::basic_condition_variable<detail::any_thread>;

namespace local {
/// Between the fibers of one thread.
using condition_variable = detail::basic_condition_variable<detail::one_thread>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
