// SPDX-License-Identifier: MIT
// Parts of a body that end when their time is up or somebody asks, and parts that nobody may end.
//
// A scope that has ended stays ended: each further switchpoint in it throws `cancelled` again, the
// second time and later only after every runnable fiber has had its turn, so swallowing it keeps
// nobody alive. It is not thrown while the fiber unwinds, nor under a shield() that is inside the
// scope, nor, for options.handler_grace, in a handler of that very exception: so clean-up may wait.
// Of several scopes that have ended the outermost speaks, also when both were due at one instant.
#pragma once

#include <motet/clock.hpp>
#include <motet/detail/heart/scope.hpp>
#include <motet/detail/heart/stop_scope.hpp>
#include <motet/detail/words/timespan.hpp>
#include <motet/errors.hpp>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Calls `f`, which may take a deadline&, and ends it after `limit`: the switchpoint it waits at,
/// or else its next one, throws `cancelled`. Of a limit that passes while `f` computes,
/// checkpoint() and the calls on descriptors know at once; any other switchpoint knows once the
/// thread has looked at its backend, so one that need not wait may still return, but not when
/// options.time_between_polls, and 16 switches, have passed. A call that returns has returned,
/// however late. Limits nest; each ends only its own call and lets the outer ones pass. No fiber is
/// made for it.
/// Returns: what `f` returned.
/// Switchpoint if `f` is.
/// Throws: timed_out if the time was up; what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
decltype(auto) with_timeout(detail::timespan limit, F&& f, call_site site = call_site::here());

/// The same, for a time limit that is no failure.
/// Returns: what `f` returned, in an optional, or nothing if the time was up; for a void `f`,
///          whether it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
auto move_on_after(detail::timespan limit, F&& f, call_site site = call_site::here());

/// The same, with a value that stands in.
/// Returns: what `f` returned, or `fallback` if the time was up.
/// Switchpoint if `f` is.
/// Throws: as above.
template <typename F, typename T>
auto move_on_after(detail::timespan limit, F&& f, T&& fallback, call_site site = call_site::here());

/// Calls `f` and ends it when a stop is requested of `token`, on whatever thread, as
/// move_on_after() does when the time is up.
/// Returns: what `f` returned, in an optional, or nothing if it was stopped; for a void `f`,
///          whether it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
auto move_on_when_stopped(std::stop_token token, F&& f, call_site site = call_site::here());

/// Calls `f` with a std::stop_token for code that knows no fibers. It is stopped when `f` is
/// interrupted by something that lasts (at the switchpoint that throws, on the fiber's own stack)
/// or left by an exception. What is registered with it must not wait.
/// Returns: what `f` returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
decltype(auto) with_stop_token(F&& f) {
  const detail::announcing_scope entered;
  return std::forward<F>(f)(entered.token());
}

/// The time limit of a running with_timeout() or move_on_after(), for its own callable. To be used
/// on the thread of its fiber.
class deadline {
 public:
  deadline(const deadline&) = delete;
  deadline& operator=(const deadline&) = delete;

  /// The time is up `limit` from now instead.
  /// Returns: false, and changes nothing, if it is up already.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  bool reset(detail::timespan limit);
  /// The time is up later by `more`; a negative span changes nothing.
  /// Returns: false, and changes nothing, if it is up already.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  bool extend(detail::timespan more);
  /// Returns: how much time is left, at least 0.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread.
  clock::duration remaining() const;

 private:
  deadline(clock::duration limit, call_site site) : scope_(limit, site) {}
  template <typename F>
  friend decltype(auto) with_timeout(detail::timespan, F&&, call_site);
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
  bool caused(const cancelled& c) const noexcept { return scope_.caused(c); }

  detail::timed_scope scope_;
};

/// Calls `f`, in which nothing from outside is thrown: no cancellation, no exception raised in the
/// fiber, no failure of a child, no time limit but those entered inside. What comes meanwhile is
/// delivered at the first switchpoint afterwards. Only fiber_ref::terminate() gets through, once
/// its grace is over. Shields nest.
/// Returns: what `f` returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws.
template <typename F>
decltype(auto) shield(F&& f) {
  const detail::shield_scope entered;
  return std::forward<F>(f)();
}

template <typename F>
decltype(auto) with_timeout(detail::timespan limit, F&& f, call_site site) {
  deadline entered(limit.length, site);
  try {
    return entered.call(f);
  } catch (const cancelled& how) {
    if (!entered.caused(how)) throw;
  }
  throw timed_out(site);
}

namespace detail {

/// Calls `f` in `entered`, which can end.
template <typename Scope, typename F>
auto unless_ended(const Scope& entered, F&& f) {
  using result_type = std::invoke_result_t<F>;
  static_assert(!std::is_reference_v<result_type>, "an optional cannot hold a reference");
  try {
    if constexpr (std::is_void_v<result_type>) {
      f();
      return true;
    } else {
      return std::optional<result_type>(f());
    }
  } catch (const cancelled& how) {
    if (!entered.caused(how)) throw;
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
  deadline entered(limit.length, site);
  return detail::unless_ended(entered.scope_, [&]() -> decltype(auto) { return entered.call(f); });
}

template <typename F>
auto move_on_when_stopped(std::stop_token token, F&& f, call_site site) {
  const detail::stop_scope entered(std::move(token), site);
  return detail::unless_ended(entered, std::forward<F>(f));
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
