// SPDX-License-Identifier: MIT
// Scopes: parts of a body that end when their time is up or when they are stopped, and parts that
// are shielded from every interruption.
//
// A scope that has ended stays ended: each further switchpoint in it throws `cancelled` again (from
// the second time on, only after every runnable fiber has had its turn), so a fiber cannot live on
// by swallowing it. `cancelled` is not thrown while the fiber unwinds, nor under a shield() inside
// the scope, nor, until options.handler_grace has passed, in a handler of that very exception, so
// that clean-up may wait. If several scopes have ended, the outermost one throws, even if all of
// them were due at the same instant.
#pragma once

#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/core/scope.hpp>
#include <motet/detail/core/stop_scope.hpp>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Calls `f`, which may take a deadline&, and ends it after `limit`: the switchpoint at which `f`
/// waits, or else its next one, throws `cancelled`. If the limit expires while `f` computes,
/// checkpoint() and the calls on descriptors throw immediately. Any other switchpoint throws once
/// the thread has polled its backend; until then a switchpoint that need not wait may still return,
/// for at most options.time_between_polls plus 16 switches. If `f` returns, its result counts,
/// however late. Limits nest; each ends only its own call. No fiber is created.
/// Returns: the result of `f`.
/// Switchpoint if `f` is.
/// Throws: timed_out if the limit expired; what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
decltype(auto) with_timeout(detail::timespan limit, F&& f, call_site site = call_site::here());

/// The same, with a point in time instead of a duration: `end`, which may be in the past.
/// Returns: what `f` returned.
/// Switchpoint if `f` is.
/// Throws: as with_timeout().
template <typename F>
decltype(auto) with_deadline(clock::time_point end, F&& f, call_site site = call_site::here());

/// As with_timeout(), for a time limit whose expiry is not a failure.
/// Returns: what `f` returned, in an optional, or nothing if the time was up; for a void `f`,
///          whether it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
auto move_on_after(detail::timespan limit, F&& f, call_site site = call_site::here());

/// The same, with a value to return if the limit expires.
/// Returns: the result of `f`, or `fallback` if the limit expired.
/// Switchpoint if `f` is.
/// Throws: as above.
template <typename F, typename T>
auto move_on_after(detail::timespan limit, F&& f, T&& fallback, call_site site = call_site::here());

/// Calls `f` and ends it when a stop is requested of `token`, on any thread, as move_on_after()
/// does when the time is up.
/// Returns: what `f` returned, in an optional, or nothing if it was stopped; for a void `f`,
///          whether it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
auto move_on_when_stopped(std::stop_token token, F&& f, call_site site = call_site::here());

/// Calls `f` with a std::stop_token, for code unaware of fibers. A stop is requested when `f` is
/// left by an exception, or interrupted by a cancellation or by the end of a scope (at the
/// switchpoint that throws, on the fiber's own stack). Callbacks of the token must not wait.
/// Returns: what `f` returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
decltype(auto) with_stop_token(F&& f) {
  const detail::announcing_scope announcement;
  return std::forward<F>(f)(announcement.token());
}

/// The time limit of a running with_timeout(), with_deadline() or move_on_after(), which its
/// callable may change. To be used on the thread of the fiber that made the call.
class deadline {
 public:
  deadline(const deadline&) = delete;
  deadline& operator=(const deadline&) = delete;

  /// Moves the deadline to `limit` from now.
  /// Returns: false, without effect, if it has passed already.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  bool reset(detail::timespan limit);
  /// Postpones the deadline by `extension`; a negative span has no effect.
  /// Returns: false, without effect, if it has passed already.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  bool extend(detail::timespan extension);
  /// Returns: the time left, at least 0.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  clock::duration remaining() const;
  /// Returns: whether `c` was thrown because this very limit has expired.
  /// Not a switchpoint.
  bool caused(const cancelled& c) const noexcept { return scope_.caused(c); }

 private:
  template <typename Limit>
  deadline(Limit limit, call_site site) : scope_(limit, site) {}
  template <typename F>
  friend decltype(auto) with_timeout(detail::timespan, F&&, call_site);
  template <typename F>
  friend decltype(auto) with_deadline(clock::time_point, F&&, call_site);
  template <typename F>
  friend auto move_on_after(detail::timespan, F&&, call_site);

  template <typename F>
  decltype(auto) call(F& f) {
    if constexpr (std::is_invocable_v<F&, deadline&>) {
      return f(*this);
    } else {
      return f();
    }
  }

  /// Returns: what `f` returns. A result that cannot be moved counts in any case.
  /// Throws: timed_out in place of the `cancelled` of this limit, or if the limit has made a call
  ///         of the C library fail in `f`.
  template <typename F>
  auto call_in_time(F& f, call_site site) -> decltype(this->call(f)) {
    using result_type = decltype(this->call(f));
    try {
      if constexpr (std::is_void_v<result_type>) {
        call(f);
        if (!scope_.ended_call) return;
      } else if constexpr (std::is_move_constructible_v<result_type>) {
        result_type result = call(f);
        if (!scope_.ended_call) return static_cast<result_type&&>(result);
      } else {
        return call(f);
      }
    } catch (const cancelled& e) {
      if (!caused(e)) throw;
    }
    throw timed_out(site);
  }

  detail::timed_scope scope_;
};

/// Returns: the earliest deadline in effect for the running fiber, for with_deadline() in another
///          fiber; now if it has passed; std::nullopt if there is none. A deadline outside a shield
///          is not in effect inside it.
/// Not a switchpoint.
std::optional<clock::time_point> nearest_deadline() noexcept;
/// Returns: the time left until nearest_deadline(), at least 0; std::nullopt if there is none.
/// Not a switchpoint.
std::optional<clock::duration> time_left() noexcept;

/// Calls `f` with interruptions deferred: cancellations, exceptions raised in the fiber, failures
/// of children, and time limits other than those entered inside `f`. A deferred interruption is
/// thrown at the first switchpoint after `f`. Only fiber_ref::terminate() gets through, once its
/// grace period is over. Shields nest.
/// Returns: the result of `f`.
/// Switchpoint if `f` is.
/// Throws: what `f` throws.
template <typename F>
decltype(auto) shield(F&& f) {
  const detail::shield_scope shield;
  return std::forward<F>(f)();
}

template <typename F>
decltype(auto) with_timeout(detail::timespan limit, F&& f, call_site site) {
  return deadline(limit.length, site).call_in_time(f, site);
}

template <typename F>
decltype(auto) with_deadline(clock::time_point end, F&& f, call_site site) {
  return deadline(end, site).call_in_time(f, site);
}

namespace detail {

/// Calls `f` inside the scope `limit`, and returns without a value if that scope has ended it, or
/// has made a call of the C library fail in it.
template <typename Scope, typename F>
auto unless_ended(const Scope& limit, F&& f) {
  using result_type = std::invoke_result_t<F>;
  static_assert(!std::is_reference_v<result_type>, "an optional cannot hold a reference");
  try {
    if constexpr (std::is_void_v<result_type>) {
      f();
      return !limit.ended_call;
    } else {
      result_type result = f();
      if (limit.ended_call) return std::optional<result_type>();
      return std::optional<result_type>(std::move(result));
    }
  } catch (const cancelled& e) {
    if (!limit.caused(e)) throw;
    if constexpr (std::is_void_v<result_type>) {
      return false;
    } else {
      return std::optional<result_type>();
    }
  }
}

}  // namespace detail

template <typename F>
auto move_on_after(detail::timespan limit, F&& f, call_site site) {
  deadline limit_scope(limit.length, site);
  return detail::unless_ended(limit_scope.scope_,
                              [&]() -> decltype(auto) { return limit_scope.call(f); });
}

template <typename F>
auto move_on_when_stopped(std::stop_token token, F&& f, call_site site) {
  const detail::stop_scope inner(std::move(token), site);
  return detail::unless_ended(inner, std::forward<F>(f));
}

template <typename F, typename T>
auto move_on_after(detail::timespan limit, F&& f, T&& fallback, call_site site) {
  auto result = move_on_after(limit, std::forward<F>(f), site);
  static_assert(!std::is_same_v<decltype(result), bool>, "nothing can stand in for nothing");
  using result_type = typename decltype(result)::value_type;
  return result.has_value() ? *std::move(result)
                            : static_cast<result_type>(std::forward<T>(fallback));
}

}}  // namespace motet::MOTET_ABI
