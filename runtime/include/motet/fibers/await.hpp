// SPDX-License-Identifier: MIT
// Waiting for several fibers at once. A callable gets a fiber that belongs to the call: all these
// fibers have ended before the call is left, whatever happens, so callables may borrow from the
// caller's frame. Fibers passed as handles already run; the call awaits them, but never ends them.
#pragma once

#include <cstddef>
#include <motet/detail/fibers/race.hpp>
#include <motet/detail/sync/awaitable.hpp>
#include <motet/fibers/group.hpp>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// Runs each of `bodies`, without copying it, in its own fiber, and waits for all of them. The
/// first failure cancels the rest. Without arguments it only throws a pending interruption.
/// Returns: a tuple of the results, with std::monostate for void; void if all bodies return
///          void.
/// Switchpoint.
/// Throws: the first failure, unchanged, once all fibers have ended; fiber_cancelled if another
///         fiber has cancelled one of them; as motet::spin(); a pending interruption.
template <typename... Bodies>
  requires(detail::callable_body<Bodies> && ...)
auto await_all(Bodies&&... bodies) {
  std::tuple<detail::awaited_result<detail::returned_by<Bodies>>...> outcomes;
  group fibers;
  const auto start = [&fibers](auto& outcome, auto& body) {
    outcome.fiber = fibers.spin([&outcome, &body] { outcome.fill(body); });
  };
  std::apply([&](auto&... outcome) { (start(outcome, bodies), ...); }, outcomes);
  fibers.await_all();
  if constexpr ((std::is_void_v<detail::returned_by<Bodies>> && ...)) {
    std::apply([](auto&... outcome) { (outcome.take(), ...); }, outcomes);
  } else {
    using results = std::tuple<detail::value_of<detail::returned_by<Bodies>>...>;
    return std::apply([](auto&... outcome) { return results{outcome.take()...}; }, outcomes);
  }
}

/// The same for a range of callables, such as a std::vector.
/// Returns: a std::vector of what the callables returned, in their order; nothing for void.
/// Switchpoint.
template <detail::range_of_bodies Bodies>
auto await_all(Bodies&& bodies) {
  using result = detail::returned_by<detail::element_of<Bodies>>;
  std::vector<detail::awaited_result<result>> outcomes(detail::count_of(bodies));
  group fibers;
  auto outcome = outcomes.begin();
  for (auto& body : bodies) {
    outcome->fiber = fibers.spin([&outcome = *outcome, &body] { outcome.fill(body); });
    ++outcome;
  }
  fibers.await_all();
  if constexpr (std::is_void_v<result>) {
    for (auto& slot : outcomes) slot.take();
  } else {
    std::vector<result> results;
    results.reserve(outcomes.size());
    for (auto& slot : outcomes) results.push_back(slot.take());
    return results;
  }
}

/// Waits until all of the fibers have ended; an exception from this call does not affect them.
/// Switchpoint.
/// Throws: the first failure, unchanged, as soon as it occurs; fiber_cancelled for a fiber that was
///         cancelled; std::logic_error for an empty handle or the running fiber's own; a pending
///         interruption.
template <detail::handle_to_fiber First, detail::handle_to_fiber... Others>
void await_all(const First& first, const Others&... rest) {
  detail::await_each({first, rest...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
void await_all(const Handles& handles) {
  detail::await_each(detail::handles_in(handles));
}

/// Runs each of `bodies`, which all return the same type, in its own fiber, and waits for the first
/// one that returns; one that throws does not count. The others are cancelled, and their results
/// and exceptions are discarded.
/// Returns: the index of that body among the arguments, from 0, and its result, as a std::pair; for
///          void the index alone.
/// Switchpoint.
/// Throws: all_failed; std::invalid_argument if there are no bodies; as motet::spin(); a pending
///         interruption.
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

/// Waits until one of the fibers has returned a value; the others continue.
/// Returns: the index of that fiber among the arguments, from 0.
/// Switchpoint.
/// Throws: all_failed, with fiber_cancelled for a fiber that was cancelled; std::invalid_argument
///         for an empty range; std::logic_error for an empty handle or the running fiber's own; a
///         pending interruption.
template <detail::handle_to_fiber First, detail::handle_to_fiber... Others>
std::size_t await_any(const First& first, const Others&... rest) {
  return detail::await_one({first, rest...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
std::size_t await_any(const Handles& handles) {
  return detail::await_one(detail::handles_in(handles));
}

/// As await_any() for callables that return the same std::optional: waits for the first callable
/// that returns an optional with a value.
/// Returns: that optional, or an empty one if all callables have returned empty ones.
/// Switchpoint.
/// Throws: the first failure, unchanged, if none produced a value; std::invalid_argument if there
///         are no callables; as motet::spin(); a pending interruption.
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

/// As await_any() for fibers that return the same std::optional: waits for the first fiber that has
/// ended with a value in its optional.
/// Returns: a copy of that optional, or an empty one if all fibers have ended with empty ones.
/// Switchpoint.
/// Throws: the first failure, unchanged, if none produced a value; otherwise as await_any().
template <typename T, typename... Others>
  requires(std::is_same_v<fiber<std::optional<T>>, Others> && ...)
std::optional<T> first_value(const fiber<std::optional<T>>& first, const Others&... rest) {
  return detail::first_value_of<T>({&first, &rest...});
}

/// The same for a range of handles.
/// Switchpoint.
template <detail::range_of_handles Handles>
auto first_value(const Handles& handles) {
  using held = std::remove_cvref_t<detail::element_of<const Handles>>;
  using value = typename detail::value_in_handle<held>::type;
  std::vector<const held*> references;
  references.reserve(detail::count_of(handles));
  for (const held& entry : handles) references.push_back(&entry);
  return detail::first_value_of<value>(references);
}

/// Runs each of `bodies` in its own fiber, and reports each outcome to `joiner` when it occurs, one
/// at a time: `joiner.on_value(index, value)`, without the value for void, or
/// `joiner.on_failure(index, error)`, with indices from 0. If such a call returns true, the joiner
/// is satisfied: the other bodies are cancelled, and their outcomes are not reported. The
/// cancellation of a body by another fiber is not reported either. The joiner must not wait.
/// Returns: whether the joiner was satisfied; if not, all bodies have ended.
/// Switchpoint.
/// Throws: an exception of the joiner, once all fibers have ended; as motet::spin(); a pending
///         interruption.
template <typename Joiner, typename... Bodies>
  requires(detail::joins<Joiner, Bodies> && ...)
bool await_with(Joiner&& joiner, Bodies&&... bodies) {
  detail::joined_race<std::remove_reference_t<Joiner>> runners(joiner, sizeof...(Bodies));
  (runners.enter(bodies), ...);
  return runners.run();
}

/// The same for a range of callables.
/// Switchpoint.
template <typename Joiner, detail::range_of_bodies Bodies>
bool await_with(Joiner&& joiner, Bodies&& bodies) {
  detail::joined_race<std::remove_reference_t<Joiner>> runners(joiner, detail::count_of(bodies));
  for (auto& body : bodies) runners.enter(body);
  return runners.run();
}

}}  // namespace motet::MOTET_ABI
