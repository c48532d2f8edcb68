// SPDX-License-Identifier: MIT
// The compiler's messages for a callable that no fiber can call, and motet's notices for a program
// that is being debugged.
#pragma once

#include <atomic>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/abi.hpp>
#include <type_traits>

namespace motet { inline namespace MOTET_ABI {

struct spin_options;

namespace detail {

struct family;

/// Whether a part of the program was compiled without NDEBUG: then motet issues notices about what
/// is allowed but seldom intended.
extern std::atomic<bool> debugged_program;

#if !defined(NDEBUG)
[[maybe_unused]] static const bool noted_as_debugged = [] {
  debugged_program.store(true, std::memory_order_relaxed);
  return true;
}();
#endif

template <typename F>
concept fiber_body = std::is_invocable_v<std::decay_t<F>&>;

struct no_fiber {};

template <typename F>
  requires(!fiber_body<F>)
no_fiber spin_in(family*, spin_options*, F&&, call_site) {
  static_assert(fiber_body<F>,
                "spin() takes a callable without parameters: put what it needs into a lambda, as "
                "spin([x] { work(x); })");
  return {};
}

}  // namespace detail

/// Not a switchpoint: never compiles.
template <typename F, typename Argument, typename... More>
  requires(!std::is_same_v<std::remove_cvref_t<F>, spin_options> &&
           !std::is_same_v<std::remove_cvref_t<Argument>, call_site> &&
           std::is_invocable_v<std::decay_t<F>&, Argument, More...>)
void spin(F&&, Argument&&, More&&...) {
  static_assert(std::is_same_v<Argument, call_site>,
                "spin() takes no arguments for its callable: put them into a lambda, as "
                "spin([x] { work(x); })");
}

}}  // namespace motet::MOTET_ABI
