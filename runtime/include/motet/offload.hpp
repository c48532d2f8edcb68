// SPDX-License-Identifier: MIT
// What blocks a thread, or keeps it busy for long, done by another one: a plain thread of a set
// that grows when all are busy, up to 256, and shrinks when they are idle. Only the calling fiber
// waits.
//
// A job runs without fibers round it. Verbs that need none (push, pop, lock, schedule, cancel and
// the like) work there as on any thread. One that starts a runtime starts it for this job alone:
// when the job has returned, its fibers are cancelled and awaited. Signals that others send are
// blocked there; a process that the job starts inherits that. If it forks, the child has this
// thread alone, and ends when the job does.
#pragma once

#include <memory>
#include <motet/detail/offloaded.hpp>
#include <type_traits>
#include <utility>

namespace motet::inline MOTET_ABI {

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
///         is none.
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
  using call_type = detail::owned_call_of<std::decay_t<F>>;
  auto made = std::make_unique<call_type>(std::forward<F>(f));
  call_type& call = *made;
  std::unique_ptr<detail::owned_call> owned = std::move(made);
  detail::owned_call::await_end(owned);
  return call.take();
}

}  // namespace motet::inline MOTET_ABI
