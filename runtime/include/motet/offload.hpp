// SPDX-License-Identifier: MIT
// What blocks a thread, or keeps it busy for long, done by another one: a plain thread of a set
// that grows when all are busy, up to 256, and shrinks when they are idle. Only the calling fiber
// waits.
//
// A job may start fibers that offload in turn. A thread that waits for such work does not count,
// nor does one whose caller has left it; but there are never more than 1,024. If all of those wait
// for one another, a further call from one of them throws.
//
// A job runs without fibers round it. Verbs that need none (push, pop, lock, schedule, cancel and
// the like) work there as on any thread. One that starts a runtime starts it for this job alone:
// when the job has returned, its fibers are cancelled and awaited. Signals that others send are
// blocked there; a process that the job starts inherits that. If it forks, the child has this
// thread alone, and ends when the job does.
#pragma once

#include <motet/detail/threads/offloaded.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Calls `f`, which may borrow what it touches, on another thread, with a std::stop_token if it
/// takes one. An interruption has to wait until `f` has ended, which it asks for through the token;
/// then the result is returned, or the exception thrown, as ever, and the interruption is thrown at
/// the next switchpoint. Only while `f` has not been begun, because 256 others are at work, is it
/// thrown at once, and then `f` is not called. On a thread without a runtime `f` is called right
/// there.
/// Returns: what `f` returned.
/// Switchpoint.
/// Throws: what `f` throws (fiber_cancelled in place of `cancelled`); what is pending for this
///         fiber, and then `f` is not called; std::system_error if no thread can be made and there
///         is none; deadlock, in a job, if all threads wait for work that is offloaded in turn.
template <typename F>
decltype(auto) offload(F&& f) {
  detail::lent_call_of<F> call(std::forward<F>(f));
  call.await_end();
  return call.take();
}

/// The same for an `f` that owns what it touches: it is copied, or moved, and an interruption
/// leaves at once. Then `f` goes on, unless it has not been begun; it, its result and what it
/// throws are destroyed on that thread, perhaps when `main` has returned.
/// Returns: what `f` returned, by value.
/// Switchpoint.
/// Throws: as offload(); std::bad_alloc.
template <typename F>
auto offload_owned(F&& f) {
  return detail::offload_owned_to(detail::offload_room::calls, std::forward<F>(f));
}

}}  // namespace motet::MOTET_ABI
