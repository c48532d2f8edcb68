// SPDX-License-Identifier: MIT
// What a future waits for: an event that is set once. set() takes the lock of the waiters only if
// there may be some.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/sync/wait_list.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A caller must hold a reference until its call returns: unlike an event, this may not be
/// destroyed just because it has been seen set, because set() may still be using it.
class publication {
 public:
  publication() = default;
  publication(const publication&) = delete;
  publication& operator=(const publication&) = delete;

  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if it is destroyed meanwhile.
  void wait() {
    if (is_set()) {
      shared_policy::enter();
    } else {
      waiters_.wait_unless([this] { return is_ready(); }, "wait for an event", this);
    }
  }
  /// Ends every open wait, in order. Not a switchpoint.
  void set() {
    race_point();
    if (stage_.exchange(stage::set, std::memory_order_acq_rel) == stage::awaited)
      waiters_.release_if([] { return true; });
  }
  /// Not a switchpoint.
  bool is_set() const noexcept { return stage_.load(std::memory_order_acquire) == stage::set; }

 private:
  template <typename>
  friend struct basic_state_case;
  static constexpr bool shared = true;

  /// Called with the lock of the list, before a wait that may follow: set() sees that, or this sees
  /// the set().
  bool is_ready() noexcept {
    stage seen = stage::open;
    stage_.compare_exchange_strong(seen, stage::awaited, std::memory_order_acq_rel,
                                   std::memory_order_acquire);
    return seen == stage::set;
  }

  enum class stage : std::uint8_t { open, awaited, set };
  wait_queue<shared_policy> waiters_;
  atomic<stage> stage_{stage::open};
};

}}}  // namespace motet::MOTET_ABI::detail
