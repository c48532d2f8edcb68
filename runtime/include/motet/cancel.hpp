// SPDX-License-Identifier: MIT
// Parts of a body that end when their time is up.
#pragma once

#include <motet/clock.hpp>
#include <motet/detail/scope.hpp>
#include <motet/errors.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet::inline MOTET_ABI {

/// Calls `f` and ends it after `limit`: its next switchpoint, or the one it waits at, throws
/// `cancelled`. A call that returns has returned, however late. Deadlines nest; each ends only its
/// own call and lets the outer ones pass.
/// Returns: what `f` returned, in an optional, or nothing if the time was up; for a void `f`,
/// whether
///          it returned.
/// Switchpoint if `f` is.
/// Throws: what `f` throws; std::bad_alloc before `f` is called.
template <typename F>
auto move_on_after(clock::duration limit, F&& f) {
  using result_type = std::invoke_result_t<F&>;
  detail::scope entered(limit);
  if constexpr (std::is_void_v<result_type>) {
    try {
      f();
      return true;
    } catch (const cancelled& how) {
      if (!entered.caused(how)) throw;
      return false;
    }
  } else {
    try {
      return std::optional<result_type>(f());
    } catch (const cancelled& how) {
      if (!entered.caused(how)) throw;
      return std::optional<result_type>();
    }
  }
}

}  // namespace motet::inline MOTET_ABI
