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

/// Calls `f(element)` for each element of `range`, on the workers of `pool` and in no particular
/// order. A worker that calls this takes part; any other fiber or thread only waits. Workers claim
/// blocks of adjacent elements, which take some 20 us each. No more calls are under way than the
/// pool has workers; if calls mostly wait, spin a fiber for each instead. `f` is not copied. Fibers
/// that it spawns have ended when this returns. Concurrent calls must not write to the same memory,
/// as adjacent elements of a std::vector<bool>. A pool's limit does not apply. A failure or an
/// interruption cancels the calls under way, and skips the elements that nobody has claimed. The
/// function and the elements may be local variables.
/// Switchpoint.
/// Throws: the first failure, or a pending interruption, once all calls have ended;
///         executor_stopped; fiber_cancelled if the pool has discarded the loop's jobs;
///         std::bad_alloc; std::length_error for more than SIZE_MAX / 2 elements; std::logic_error
///         on a foreign thread, and on one whose runtime has ended.
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
/// Elements of a forward range are passed as it yields them; those of a single-pass range are moved
/// into the job. `f` must return a value, and be safe to call on several threads at once. The pool,
/// and a range that is not moved in, must outlive the results.
/// Returns: a single-pass range. Its begin() and its iterators' ++ are switchpoints. A call
///          that has failed throws where its result would come; a pending interruption, and what
///          submit() or `range` throws, comes at once, even if earlier results are outstanding. An
///          exception is the end. The range's destructor cancels the calls that have not ended, and
///          waits for them; nothing interrupts it.
/// Not a switchpoint.
/// Throws: std::invalid_argument for 0 in flight; what moving `range` or `f` throws.
template <std::ranges::input_range Range, typename F>
auto transform_in(thread_pool& pool, Range&& range, F&& f, std::size_t in_flight,
                  call_site site = call_site::here()) {
  return detail::ordered_results<thread_pool, Range, std::decay_t<F>>(
      pool, std::forward<Range>(range), std::forward<F>(f), in_flight, site);
}

/// The same with twice as many calls in flight as the pool has workers.
/// Not a switchpoint.
/// Throws: std::bad_alloc.
template <std::ranges::input_range Range, typename F>
auto transform_in(thread_pool& pool, Range&& range, F&& f, call_site site = call_site::here()) {
  return transform_in(pool, std::forward<Range>(range), std::forward<F>(f),
                      2 * detail::workers_of(pool), site);
}

}}  // namespace motet::MOTET_ABI
