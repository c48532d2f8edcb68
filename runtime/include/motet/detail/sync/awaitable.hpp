// SPDX-License-Identifier: MIT
// What await_all(), await_any() and first_value() take: callables, handles, and ranges of either.
#pragma once

#include <cstddef>
#include <motet/fibers/fiber.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename T>
concept handle_to_fiber = std::is_base_of_v<fiber_ref, std::remove_cvref_t<T>>;

template <typename T>
concept callable_body = std::is_invocable_v<std::remove_reference_t<T>&>;

template <typename R>
using element_of = decltype(*std::begin(std::declval<std::remove_reference_t<R>&>()));

template <typename R>
concept range_of_bodies = !callable_body<R> && callable_body<element_of<R>>;

template <typename R>
concept range_of_handles = handle_to_fiber<element_of<R>>;

/// The type that a `Body` returns when it is called as an lvalue.
template <typename Body>
struct return_of_call {
  using returned = std::invoke_result_t<std::remove_reference_t<Body>&>;
  static_assert(
      !std::is_reference_v<returned>,
      "a callable that is awaited cannot return a reference: return a pointer or a value");
  using type = std::remove_cvref_t<returned>;
};
template <typename Body>
using returned_by = typename return_of_call<Body>::type;

/// The one type that all the callables return.
template <typename First, typename... Others>
struct return_of_all {
  using type = returned_by<First>;
  static_assert((std::is_same_v<type, returned_by<Others>> && ...),
                "callables that race must all return the same type");
};
template <typename... Bodies>
using returned_by_all = typename return_of_all<Bodies...>::type;

/// T, or std::monostate in place of void.
template <typename T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// Returns: the number of elements of the range, which must store them: they are not copied.
template <typename R>
std::size_t count_of(R& range) {
  static_assert(std::is_lvalue_reference_v<element_of<R>>,
                "a range that is awaited must hold its elements, not make them");
  std::size_t count = 0;
  for ([[maybe_unused]] auto& item : range) ++count;
  return count;
}

template <typename R>
std::vector<fiber_ref> handles_in(R& range) {
  return std::vector<fiber_ref>(std::begin(range), std::end(range));
}

/// Where a fiber of await_all() puts what its callable returned.
template <typename T>
struct awaited_result {
  fiber_ref fiber;
  std::optional<value_of<T>> value;

  template <typename Body>
  void fill(Body& body) {
    if constexpr (std::is_void_v<T>) {
      body();
      value.emplace();
    } else {
      value.emplace(body());
    }
  }

  /// Called when the fiber is dead.
  /// Throws: fiber_cancelled if the fiber has no value because it was cancelled.
  value_of<T>&& take() {
    if (!value) fiber.await();
    return std::move(*value);
  }
};

}}}  // namespace motet::MOTET_ABI::detail
