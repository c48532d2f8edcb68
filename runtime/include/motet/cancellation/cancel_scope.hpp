// SPDX-License-Identifier: MIT
// Parts of a fiber's body that are ended by an explicit call.
#pragma once

#include <motet/base/call_site.hpp>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/stop_scope.hpp>
#include <stop_token>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// A set of calls that one request, with a reason, ends together; fiber_ref::cancel() ends a whole
/// fiber instead. A scope has any number of calls, in any fibers of any threads, and must outlive
/// them and cancel(). For code that has a std::stop_token already, there is move_on_when_stopped();
/// for a time limit, with_timeout().
class cancel_scope {
 public:
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  cancel_scope() = default;
  cancel_scope(const cancel_scope&) = delete;
  cancel_scope& operator=(const cancel_scope&) = delete;

  /// Calls `f`, and ends it when the scope is cancelled, as move_on_after() does when the time is
  /// up; at its first switchpoint if the scope has been cancelled before.
  /// Returns: what `f` returned, in an optional, or nothing if the scope has ended it; for a void
  ///          `f`, whether it returned.
  /// Switchpoint if `f` is.
  /// Throws: what `f` throws; std::bad_alloc before `f` is called.
  template <typename F>
  auto call(F&& f, call_site site = call_site::here()) {
    const detail::stop_scope inner(source_.get_token(), site, &reason_);
    return detail::unless_ended(inner, std::forward<F>(f));
  }

  /// Cancels all current and future calls in the scope. Any thread. `reason` is a string literal.
  /// Returns: false if the scope is already cancelled; the first reason stays.
  /// Not a switchpoint.
  bool cancel(const char* reason = "its scope was cancelled",
              call_site site = call_site::here()) noexcept;

  /// Returns: why the scope was cancelled; null if it was not. Valid as long as the scope lives.
  /// Not a switchpoint. Any thread.
  const cancel_reason* why() const noexcept {
    return source_.stop_requested() ? &reason_ : nullptr;
  }

  /// Returns: whether `c` was thrown because this very scope was cancelled; to be called inside
  ///          call(), by the fiber that has caught `c`.
  /// Not a switchpoint.
  bool caused(const cancelled& c) const noexcept;

 private:
  std::stop_source source_;
  detail::atomic<bool> stop_requested_{false};
  cancel_reason reason_ = detail::interruption::reason("");  // written once, before the stop
};

}}  // namespace motet::MOTET_ABI
