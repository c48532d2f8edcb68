// SPDX-License-Identifier: MIT
// One-time execution, however many callers request it.
#pragma once

#include <atomic>
#include <motet/detail/base/atomic.hpp>
#include <motet/sync/mutex.hpp>
#include <mutex>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_once {
 public:
  basic_once() = default;
  basic_once(const basic_once&) = delete;
  basic_once& operator=(const basic_once&) = delete;

  /// Calls `f`, unless an earlier call has returned. Others that call meanwhile wait until this
  /// call is over; if `f` throws, or is interrupted, the next of them calls its own function.
  /// Switchpoint; switches only if it must wait, or in `f`.
  /// Throws: what `f` throws; a pending interruption, unless is_done(); std::logic_error if
  ///         `f` itself calls this, or if this is destroyed meanwhile.
  template <typename F>
  void call(F&& f) {
    if (is_done()) return;
    call_mutex_.lock_for("call of a once");
    const std::lock_guard lock(call_mutex_, std::adopt_lock);
    if (done_.load(std::memory_order_relaxed)) return;
    std::forward<F>(f)();
    done_.store(true, std::memory_order_release);
  }

  /// Returns: whether the function has returned; its effects are visible then.
  /// Not a switchpoint.
  bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

 private:
  detail::atomic<bool> done_{false};
  basic_mutex<Sharing> call_mutex_;
};

}  // namespace detail

/// Between fibers and threads.
using once = detail::basic_once<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using once = detail::basic_once<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
