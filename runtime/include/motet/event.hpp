// SPDX-License-Identifier: MIT
// An event has happened or not yet. It stays set, unlike a notification.
#pragma once

#include <motet/detail/waiting/wait_list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_event {
 public:
  basic_event() = default;
  basic_event(const basic_event&) = delete;
  basic_event& operator=(const basic_event&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_event() { waiting_.send_away(sharing_); }

  /// Waits until the event is set; returns at once if it is.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; std::logic_error if the event is destroyed meanwhile.
  void wait() {
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      if (set_) {
        sharing_.unlock();
        return;
      }
    } while (sharing_.becomes_fiber(thread));
    single_wait waiting("wait for an event", this, thread, Sharing::shared);
    waiting_.push_back(waiting);
    sharing_.unlock();
    stand_by(sharing_, waiting);
  }

  /// Sets the event: ends every open wait, in order, and later waits return at once.
  /// Not a switchpoint.
  void set() {
    thread_core* thread = self_core();
    chosen_ones all;
    sharing_.lock();
    set_ = true;
    while (wait_node* next = waiting_.choose(thread)) all.add(*next);
    sharing_.unlock();
    all.notify(thread);
  }

  /// Clears the event: a wait that begins from now on lasts until another set().
  /// Not a switchpoint.
  void reset() {
    const std::lock_guard in(sharing_);
    set_ = false;
  }

  /// Returns: whether the event is set.
  /// Not a switchpoint.
  bool is_set() const {
    const std::lock_guard in(sharing_);
    return set_;
  }

 private:
  mutable Sharing sharing_;
  bool set_ = false;
  wait_list waiting_;
};

}  // namespace detail

/// Between fibers and threads.
using event = detail::basic_event<detail::any_thread>;

namespace local {
/// Between the fibers of one thread.
using event = detail::basic_event<detail::one_thread>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
