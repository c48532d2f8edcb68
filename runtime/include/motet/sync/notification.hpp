// SPDX-License-Identifier: MIT
// A notification ends waits that have begun. It is not kept for later waits, unlike an event.
#pragma once

#include <cstddef>
#include <motet/detail/sync/wait_list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_notification {
 public:
  basic_notification() = default;
  basic_notification(const basic_notification&) = delete;
  basic_notification& operator=(const basic_notification&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_notification() { waiters_.detach_all(sharing_); }

  /// Waits for the next notification.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the notification is destroyed
  ///         meanwhile.
  void wait() {
    thread_core* thread = Sharing::enter_to_wait();
    single_wait node("wait for a notification", this, thread, Sharing::shared);
    enter(node);
    wait_on(sharing_, node);
  }

  /// Ends the wait of the fiber or thread that has waited longest, but does not switch to it.
  /// Returns: whether a wait was ended.
  /// Not a switchpoint.
  bool notify_one() {
    thread_core* thread = self_core();
    sharing_.lock();
    wait_node* first = waiters_.choose(thread);
    sharing_.unlock();
    if (first != nullptr) first->owner->notify(thread);
    return first != nullptr;
  }

  /// Ends every wait that has begun, in order.
  /// Returns: whether a wait was ended.
  /// Not a switchpoint.
  bool notify_all() {
    thread_core* thread = self_core();
    wake_list waiters;
    sharing_.lock();
    while (wait_node* next = waiters_.choose(thread)) waiters.add(*next);
    sharing_.unlock();
    return waiters.notify(thread) > 0;
  }

 private:
  template <typename>
  friend class basic_condition_variable;

  void enter(wait_node& node) {
    const std::lock_guard lock(sharing_);
    waiters_.push_back(node);
  }

  Sharing sharing_;
  wait_list waiters_;
};

}  // namespace detail

/// Between fibers and threads.
using notification = detail::basic_notification<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using notification = detail::basic_notification<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
