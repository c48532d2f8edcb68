// SPDX-License-Identifier: MIT
// Waiting for several at once. Callables get a fiber each and are owned: all have ended before the
// call is left, whatever happens, so they may borrow from the caller's frame. Fibers that run
// already are only borrowed, through their handles: they go on.
#pragma once

#include <cstddef>
#include <motet/detail/life/group.hpp>
#include <motet/detail/life/race.hpp>
#include <motet/detail/waiting/awaitable.hpp>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// Calls each of `bodies`, where it stands, in a fiber of its own, and waits for all. The first
/// failure cancels the rest. Without arguments it only delivers what is pending.
/// Returns: a tuple of what they returned, std::monostate for void; nothing if all return void.
/// Switchpoint.
/// Throws: the first failure, unchanged, once all have ended; fiber_cancelled if somebody else has
///         cancelled one of them; as motet::spin(); what is pending for this fiber.
template <typename... Bodies>
  requires(detail::callable_body<Bodies> && ...)
auto await_all(Bodies&&... bodies) {
  std::tuple<detail::awaited_result<detail::returned_by<Bodies>>...> places;
  group fibers;
  const auto start = [&fibers](auto& place, auto& body) {
    place.fiber = fibers.spin([&place, &body] { place.fill(body); });
  };
  std::apply([&](auto&... place) { (start(place, bodies), ...); }, places);
  fibers.await_all();
  if constexpr ((std::is_void_v<detail::returned_by<Bodies>> && ...)) {
    std::apply([](auto&... place) { (place.take(), ...); }, places);
  } else {
    using results = std::tuple<detail::value_of<detail::returned_by<Bodies>>...>;
    return std::apply([](auto&... place) { return results{place.take()...}; }, places);
  }
}

/// The same for a range of callables, such as a std::vector.
/// Returns: a std::vector of what they returned, in their order; nothing for void.
/// Switchpoint.
template <detail::range_of_bodies Bodies>
auto await_all(Bodies&& bodies) {
  using result = detail::returned_by<detail::element_of<Bodies>>;
  std::vector<detail::awaited_result<result>> places(detail::count_of(bodies));
  group fibers;
  auto place = places.begin();
  for (auto& body : bodies) {
    place->fiber = fibers.spin([&place = *place, &body] { place.fill(body); });
    ++place;
  }
  fibers.await_all();
  if constexpr (std::is_void_v<result>) {
    for (auto& each : places) each.take();
  } else {
    std::vector<result> results;
    results.reserve(places.size());
    for (auto& each : places) results.push_back(each.take());
    return results;
  }
}

/// Waits until all of the fibers are dead; they go on if it is left before.
/// Switchpoint.
/// Throws: the first failure, unchanged, as soon as it is known, fiber_cancelled for one that was
///         cancelled; std::logic_error for an empty handle or the running fiber's own; what is
///         pending for this fiber.
template <detail::handle_to_fiber First, detail::handle_to_fiber... Others>
void await_all(const First& first, const Others&... others) {
  detail::await_each({first, others...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
void await_all(const Handles& handles) {
  detail::await_each(detail::handles_in(handles));
}

/// Calls each of `bodies`, which all return the same type, in a fiber of its own, and waits for the
/// first that returns; a failure is not counted. The others are cancelled; how they end, and what
/// they return, is lost.
/// Returns: the place of the first among the arguments, from 0, and what it returned, as a
///          std::pair; for void the place alone.
/// Switchpoint.
/// Throws: all_failed; std::invalid_argument if there are none; as motet::spin(); what is pending
///         for this fiber.
template <typename... Bodies>
  requires(sizeof...(Bodies) > 0 && (detail::callable_body<Bodies> && ...))
auto await_any(Bodies&&... bodies) {
  using result = detail::returned_by_all<Bodies...>;
  std::optional<detail::value_of<result>> prize;
  detail::race runners(sizeof...(Bodies), detail::race::rule::first_win);
  (detail::enter_for_any<result>(runners, prize, bodies), ...);
  return detail::finish_any<result>(runners, prize);
}

[[noreturn]] std::size_t await_any();

/// The same for a range of callables.
/// Switchpoint.
template <detail::range_of_bodies Bodies>
auto await_any(Bodies&& bodies) {
  using result = detail::returned_by<detail::element_of<Bodies>>;
  const std::size_t count = detail::count_of(bodies);
  detail::check_entrants(count, "await_any");
  std::optional<detail::value_of<result>> prize;
  detail::race runners(count, detail::race::rule::first_win);
  for (auto& body : bodies) detail::enter_for_any<result>(runners, prize, body);
  return detail::finish_any<result>(runners, prize);
}

/// Waits until one of the fibers has ended with a value; all of them go on.
/// Returns: its place among the arguments, from 0.
/// Switchpoint.
/// Throws: all_failed, in which one that was cancelled has fiber_cancelled; std::invalid_argument
/// if
///         there are none; std::logic_error for an empty handle or the running fiber's own; what is
///         pending for this fiber.
template <detail::handle_to_fiber First, detail::handle_to_fiber... Others>
std::size_t await_any(const First& first, const Others&... others) {
  return detail::await_one({first, others...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
std::size_t await_any(const Handles& handles) {
  return detail::await_one(detail::handles_in(handles));
}

/// As await_any() for callables that return the same std::optional: waits for the first that
/// returns one with a value.
/// Returns: that, or an empty one if all have returned such.
/// Switchpoint.
/// Throws: the first failure, unchanged, if none came to a value; std::invalid_argument if there
///         are none; as motet::spin(); what is pending for this fiber.
template <typename... Bodies>
  requires(sizeof...(Bodies) > 0 && (detail::callable_body<Bodies> && ...))
auto first_value(Bodies&&... bodies) {
  using value = typename detail::value_in_optional<detail::returned_by_all<Bodies...>>::type;
  std::optional<value> prize;
  detail::race runners(sizeof...(Bodies), detail::race::rule::first_win);
  (detail::enter_for_value(runners, prize, bodies), ...);
  if (!runners.run()) runners.rethrow_first_failure();
  return prize;
}

[[noreturn]] void first_value();

/// The same for a range of callables.
/// Switchpoint.
template <detail::range_of_bodies Bodies>
auto first_value(Bodies&& bodies) {
  using result = detail::returned_by<detail::element_of<Bodies>>;
  std::optional<typename detail::value_in_optional<result>::type> prize;
  const std::size_t count = detail::count_of(bodies);
  detail::check_entrants(count, "first_value");
  detail::race runners(count, detail::race::rule::first_win);
  for (auto& body : bodies) detail::enter_for_value(runners, prize, body);
  if (!runners.run()) runners.rethrow_first_failure();
  return prize;
}

/// As await_any() for fibers that return the same std::optional: waits for the first that has ended
/// with one that has a value.
/// Returns: a copy of that, or an empty one if all have ended with such.
/// Switchpoint.
/// Throws: the first failure, unchanged, if none came to a value; otherwise as await_any().
template <typename T, typename... Others>
  requires(std::is_same_v<fiber<std::optional<T>>, Others> && ...)
std::optional<T> first_value(const fiber<std::optional<T>>& first, const Others&... others) {
  return detail::first_value_of<T>({&first, &others...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
auto first_value(const Handles& handles) {
  using held = std::remove_cvref_t<detail::element_of<const Handles>>;
  using value = typename detail::value_in_handle<held>::type;
  std::vector<const held*> places;
  places.reserve(detail::count_of(handles));
  for (const held& each : handles) places.push_back(&each);
  return detail::first_value_of<value>(places);
}

}}  // namespace motet::MOTET_ABI
