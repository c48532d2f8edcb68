// SPDX-License-Identifier: MIT
// Waiting for several things at once: select() takes exactly one branch, the first that is ready.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <motet/detail/sync/channel_cases.hpp>
#include <motet/detail/sync/room_cases.hpp>
#include <motet/sync/channel_ends.hpp>
#include <motet/sync/select_cases.hpp>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// With this as its first argument, select() takes the first-listed branch that can proceed.
struct in_order_t {};
inline constexpr in_order_t in_order{};

namespace detail {

/// Those of the branches given to one select() that are enabled.
template <std::size_t Most>
class enabled_branches {
 public:
  void add(select_branch& candidate, std::size_t index) noexcept {
    candidate.index = index;
    if (candidate.enabled) branches_[count_++] = &candidate;
  }
  select_branch& take_one(bool as_they_are) {
    return detail::select_one(std::span(branches_.data(), count_), as_they_are);
  }

 private:
  std::array<select_branch*, Most> branches_;
  std::size_t count_ = 0;
};

template <typename... Branches, typename... Handlers>
std::size_t select_among(bool as_they_are, select_case<Branches, Handlers>&... cases) {
  enabled_branches<sizeof...(cases)> branches;
  std::size_t place = 0;
  (branches.add(cases.branch, place++), ...);
  const select_branch& winner = branches.take_one(as_they_are);
  const auto call = [&](auto& item) {
    if (&item.branch == &winner) item.branch.call(item.handler);
  };
  (call(cases), ...);
  return winner.index;
}

template <typename>
inline constexpr bool is_select_case = false;
template <typename Branch, typename F>
inline constexpr bool is_select_case<select_case<Branch, F>> = true;

template <typename Cases>
concept range_of_cases =
    is_select_case<std::remove_reference_t<decltype(*std::begin(std::declval<Cases&>()))>>;

template <typename Cases>
std::size_t select_in(bool as_they_are, Cases& cases) {
  std::vector<select_branch*> branches;
  std::size_t place = 0;
  for (auto& item : cases) {
    item.branch.index = place++;
    item.branch.begin();
    if (item.branch.enabled) branches.push_back(&item.branch);
  }
  const select_branch& winner = select_one_of(branches, as_they_are);
  const std::size_t index = winner.index;
  for (auto& item : cases) {
    if (&item.branch != &winner) continue;
    item.branch.call(item.handler);  // which may change the range
    break;
  }
  return index;
}

}  // namespace detail

/// A branch that pops from `source` and then calls `handler(std::optional<T>)`, or `handler()`. The
/// optional is empty if the channel is closed and empty.
/// Not a switchpoint.
template <typename T, typename Sharing, typename Store, typename F = detail::nothing_to_do>
auto on_pop(detail::basic_channel<T, Sharing, Store>& source, F handler = {}) {
  using branch = detail::pop_case<T, Sharing, Store>;
  return detail::select_case<branch, F>{branch(queue_of(source)), std::move(handler)};
}

/// The same for a receiver.
/// Not a switchpoint.
/// Throws: std::logic_error for an empty receiver.
template <typename T, typename Sharing, typename F = detail::nothing_to_do>
auto on_pop(const detail::basic_receiver<T, Sharing>& source, F handler = {}) {
  return on_pop(detail::channel_of(source), std::move(handler));
}

/// A branch that pushes `item` to `destination` and then calls `handler()`. Unless the branch is
/// taken, the caller keeps `item`. If the channel is closed, select() throws channel_closed.
/// Not a switchpoint.
template <typename T, typename Sharing, typename Store, typename F = detail::nothing_to_do>
auto on_push(detail::basic_channel<T, Sharing, Store>& destination, std::type_identity_t<T>&& item,
             F handler = {}) {
  using branch = detail::push_case<T, Sharing, Store>;
  return detail::select_case<branch, F>{branch(queue_of(destination), item), std::move(handler)};
}

/// The same for a sender.
/// Not a switchpoint.
/// Throws: std::logic_error for an empty sender.
template <typename T, typename Sharing, typename F = detail::nothing_to_do>
auto on_push(const detail::basic_sender<T, Sharing>& destination, std::type_identity_t<T>&& item,
             F handler = {}) {
  return on_push(detail::channel_of(destination), std::move(item), std::move(handler));
}

/// A branch that is ready when `flag` is set, and then calls `handler()`.
/// Not a switchpoint.
template <typename Sharing, typename F = detail::nothing_to_do>
auto on_set(detail::basic_event<Sharing>& flag, F handler = {}) {
  using branch = detail::state_case<detail::basic_event<Sharing>>;
  return detail::select_case<branch, F>{branch(flag), std::move(handler)};
}

/// A branch that is ready when `gate` is open, and then calls `handler()`.
/// Not a switchpoint.
template <typename Sharing, typename F = detail::nothing_to_do>
auto on_open(detail::basic_latch<Sharing>& gate, F handler = {}) {
  using branch = detail::state_case<detail::basic_latch<Sharing>>;
  return detail::select_case<branch, F>{branch(gate), std::move(handler)};
}

/// A branch that is ready when `answer` has a value or an error, and then calls `handler()`.
/// future::get() returns or throws it.
/// Not a switchpoint.
/// Throws: std::logic_error for a future without a promise.
template <typename T, typename F = detail::nothing_to_do>
auto on_ready(future<T> answer, F handler = {}) {
  using branch = detail::future_case<T>;
  return detail::select_case<branch, F>{branch(std::move(answer)), std::move(handler)};
}

/// A branch that takes `count` permits, and then calls `handler()`, which must release them. If the
/// semaphore is closed, select() throws semaphore_closed.
/// Not a switchpoint.
/// Throws: std::invalid_argument if `count` is not positive.
template <typename Sharing, typename F = detail::nothing_to_do>
auto on_acquire(detail::basic_semaphore<Sharing>& permits, std::ptrdiff_t count, F handler = {}) {
  using branch = detail::acquire_case<Sharing>;
  return detail::select_case<branch, F>{branch(permits, count), std::move(handler)};
}

/// A branch that calls pop() of a subscription to a broadcast, or next() of one to a watch, when
/// that need not wait, and then `handler(std::optional<T>)`, or `handler()`. select() throws what
/// pop() throws.
/// Not a switchpoint.
/// Throws: std::logic_error for an empty subscription.
template <typename T, typename Shared, typename F = detail::nothing_to_do>
auto on_next(detail::subscription_to<T, Shared>& subscriber, F handler = {}) {
  using branch = detail::next_case<T, Shared>;
  return detail::select_case<branch, F>{branch(subscriber), std::move(handler)};
}

/// Waits until one of the branches `cases` can proceed, takes that branch alone, and calls its
/// handler. If several branches can proceed, each has an equal chance. If select() is interrupted,
/// no branch has been taken.
/// Returns: the index of the branch that was taken among the arguments, from 0.
/// Switchpoint; switches only if it must wait. Starts a runtime on a thread that has none.
/// Throws: a pending interruption, what a branch or its handler throws;
///         std::invalid_argument if no branch is enabled; std::logic_error if a branch's object
///         is destroyed meanwhile.
template <typename... Branches, typename... Handlers>
std::size_t select(detail::select_case<Branches, Handlers>&&... cases) {
  static_assert(sizeof...(cases) > 0, "select() needs something to wait for");
  return detail::select_among(false, cases...);
}

/// The same, but of several branches that can proceed it takes the first one given.
/// Switchpoint; switches only if it must wait.
template <typename... Branches, typename... Handlers>
std::size_t select(in_order_t, detail::select_case<Branches, Handlers>&&... cases) {
  static_assert(sizeof...(cases) > 0, "select() needs something to wait for");
  return detail::select_among(true, cases...);
}

/// The same for a range of cases of one type, such as a std::vector, which may be reused. All
/// objects that the cases refer to must live as long: channels and their ends, subscriptions, and
/// the item of on_push(), which must be set again after it has been pushed.
/// Returns: the index of the case that was taken, from 0.
/// Switchpoint; switches only if it must wait.
/// Throws: as above; std::bad_alloc.
template <detail::range_of_cases Cases>
std::size_t select(Cases& cases) {
  return detail::select_in(false, cases);
}
/// Switchpoint; switches only if it must wait.
template <detail::range_of_cases Cases>
std::size_t select(in_order_t, Cases& cases) {
  return detail::select_in(true, cases);
}

}}  // namespace motet::MOTET_ABI
