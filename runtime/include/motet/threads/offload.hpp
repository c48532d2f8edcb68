// SPDX-License-Identifier: MIT
// Runs calls that block, or compute for a long time, on a plain thread. The set of these threads
// grows up to options.offload_limit while all of them are busy, and shrinks when they are idle.
// Only the calling fiber waits. motet's own blocking calls, for example on files, have a set of
// their own. A notice reports a call that has waited a second for a thread.
//
// A job may spawn fibers that offload in turn. Threads that wait for such calls do not count
// towards the limit, nor do threads whose callers have abandoned their jobs; but there are never
// more than four times the limit. If all of those wait for one another, a further call throws.
//
// A job runs without fibers. Functions that need none (push, pop, lock, schedule, cancel and the
// like) work in a job as on any thread. A function that starts a runtime starts it for this job
// alone: when the job has returned, the runtime's fibers are cancelled and awaited. A job has the
// signal mask of the thread that offloads it, and so has a process that it starts; a thread without
// a job receives no signals. If a job forks, the child process consists of this thread alone, and
// ends when the job does.
#pragma once

#include <motet/base/call_site.hpp>
#include <motet/detail/threads/offloaded.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Calls `f`, which may borrow, on another thread, with a std::stop_token if it takes one. An
/// interruption requests a stop through the token and waits until `f` has ended; then the result
/// is returned, or the exception of `f` thrown, as usual, and the interruption is thrown at the
/// next switchpoint. If `f` has not begun yet, because all threads are busy, the interruption is
/// instead thrown at once, and `f` is not called. On a thread without a runtime `f` is
/// called on the calling thread.
/// Returns: what `f` returned.
/// Switchpoint.
/// Throws: what `f` throws (fiber_cancelled in place of `cancelled`);
///         a pending interruption, and then `f` is not called; std::system_error if the set has no
///         thread and none can be made; deadlock, in a job, if all threads wait for work that is
///         offloaded in turn.
template <typename F>
decltype(auto) offload(F&& f, call_site site = call_site::here()) {
  return detail::offload_to(detail::offload_pool::calls, std::forward<F>(f), site);
}

/// The same for an `f` that owns its data: `f` is copied or moved, and an interruption is thrown
/// immediately. If `f` has begun, it continues; the callable, its result and its exception are
/// destroyed on the other thread, perhaps after `main` has returned.
/// Returns: the result of `f`, by value.
/// Switchpoint.
/// Throws: as offload(); std::bad_alloc.
template <typename F>
auto offload_owned(F&& f, call_site site = call_site::here()) {
  return detail::offload_owned_to(detail::offload_pool::calls, std::forward<F>(f), site);
}

}}  // namespace motet::MOTET_ABI
