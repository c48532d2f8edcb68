// SPDX-License-Identifier: MIT
// An event either has happened or has not. It stays set, unlike a notification.
#pragma once

#include <motet/detail/sync/wait_list.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_event {
 public:
  basic_event() = default;
  basic_event(const basic_event&) = delete;
  basic_event& operator=(const basic_event&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_event() = default;

  /// Waits until the event is set; returns immediately if it is set already.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the event is destroyed meanwhile.
  void wait() {
    waiters_.wait_unless([this] { return is_ready(); }, "wait for an event", this);
  }

  /// Sets the event: ends every open wait, in order, and later waits return at once.
  /// Not a switchpoint.
  void set() {
    waiters_.release_if([this] { return set_ = true; });
  }

  /// Clears the event: waits that begin after this call last until another set().
  /// Not a switchpoint.
  void reset() {
    waiters_.look([this] { set_ = false; });
  }

  /// Returns: whether the event is set.
  /// Not a switchpoint.
  bool is_set() const {
    return waiters_.look([this] { return set_; });
  }

 private:
  template <typename>
  friend struct basic_state_case;
  static constexpr bool shared = Sharing::shared;
  bool is_ready() const noexcept { return set_; }

  mutable wait_queue<Sharing> waiters_;
  bool set_ = false;
};

}  // namespace detail

/// Between fibers and threads.
using event = detail::basic_event<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using event = detail::basic_event<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
