// SPDX-License-Identifier: MIT
// Loops whose calls are shared by the workers of a thread_pool.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/detail/threads/loop_body.hpp>
#include <motet/detail/threads/ordered_results.hpp>
#include <motet/threads/thread_pool.hpp>
#include <ranges>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Calls `f(element)` for each element of `range`, several at a time, in no particular order: on
/// the workers of `pool`, and on the thread of the calling fiber if it is one of them. Workers
/// claim blocks of neighbouring elements; a block grows until its calls take some 20 us. `f` is not
/// copied; it and the elements may be local variables. A call may wait, but a worker makes only one
/// at a time: for calls that wait most of the time, spin a fiber for each. A pool's limit does not
/// apply. Meant for 1,000 elements and more, of 1 ns to some milliseconds. Two calls must not write
/// to the same memory, which neighbours in a std::vector<bool> share.
/// Switchpoint.
/// Throws: the first failure, unchanged, once all calls have ended: a failure cancels the other
///         calls, and elements whose turn has not come are left out; a pending interruption, with
///         the same effect; executor_stopped; fiber_cancelled if the pool discards its jobs;
///         std::bad_alloc; std::logic_error if this thread's runtime has ended; std::length_error
///         for more than SIZE_MAX / 2 elements. Later failures are dropped.
template <std::ranges::random_access_range Range, typename F>
  requires std::ranges::sized_range<Range> &&
           std::invocable<F&, std::ranges::range_reference_t<Range>>
void parallel_for(thread_pool& pool, Range&& range, F&& f, call_site site = call_site::here()) {
  using distance = std::ranges::range_difference_t<Range>;
  const auto elements = std::ranges::begin(range);
  auto body = [&](std::size_t first, std::size_t last) {
    for (; first < last; ++first) std::invoke(f, elements[static_cast<distance>(first)]);
  };
  const distance length = std::ranges::distance(range);
  auto count = static_cast<std::size_t>(length);
  if (static_cast<distance>(count) != length) count = std::numeric_limits<std::size_t>::max();
  detail::call_in_blocks(pool, count, detail::loop_body::of(body), site);
}

/// Calls `f(element)` for the elements of `range` as jobs of `pool`, at most `in_flight` at a time,
/// and yields the results in the order of the elements:
///
///     for (const image& thumbnail : motet::transform_in(pool, files, &make_thumbnail)) ...
///
/// The elements of a container are passed by reference; those of a range that can be read only once
/// are values in the job. `f` is called on several threads at a time. The calling fiber reads up to
/// `in_flight` elements ahead. The pool must outlive the results.
/// Returns: a range that can be read once. Its begin() and its iterators' ++ are switchpoints and
///          throw the failure of the call whose result comes next, unchanged; and, without waiting
///          for the results before, a pending interruption and what submit() and `range` throw. A
///          failure ends the range. Its destructor cancels the calls that have not ended, and waits
///          for them; nothing interrupts it.
/// Not a switchpoint.
/// Throws: std::invalid_argument for 0 in flight; std::bad_alloc.
template <std::ranges::input_range Range, typename F>
auto transform_in(thread_pool& pool, Range&& range, F&& f, std::size_t in_flight,
                  call_site site = call_site::here()) {
  return detail::ordered_results<thread_pool, Range, std::decay_t<F>>(
      pool, std::forward<Range>(range), std::forward<F>(f), in_flight, site);
}

/// The same with two calls in flight per worker.
/// Not a switchpoint.
/// Throws: std::bad_alloc.
template <std::ranges::input_range Range, typename F>
auto transform_in(thread_pool& pool, Range&& range, F&& f, call_site site = call_site::here()) {
  return transform_in(pool, std::forward<Range>(range), std::forward<F>(f),
                      2 * detail::workers_of(pool), site);
}

}}  // namespace motet::MOTET_ABI
