// SPDX-License-Identifier: MIT
// What the end of a fiber consists of, for those that end a main fiber, or a worker's.
#pragma once

#include <exception>
#include <motet/detail/core/cold_part.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The first function of a fiber; see core/hooks.hpp.
void fiber_main(void* block);
void counted_fiber_main(void* block);

/// Runs the body, and notes how it has ended.
void run_body(control_block& fiber) noexcept;
/// Runs a thread's function in its main fiber, the running one, whose outcome it decides.
void run_main(thread_state& thread, const body_kind& kind, void* function) noexcept;

/// Returns: what a child has failed with that the fiber was not told of, first on other threads; or
///          null.
std::exception_ptr next_failure(control_block& fiber) noexcept;
/// A fiber that has not failed fails with a child's failure; on_unhandled gets the others.
void inherit_failure(control_block& fiber) noexcept;
/// Passes all failures of the children to on_unhandled.
void give_up_failures(control_block& parent) noexcept;
/// Passes an exception to on_unhandled that was raised after the body's last switchpoint.
[[gnu::noinline]] void give_up_raised(control_block& fiber) noexcept;
/// From here on the fiber is dead.
/// Returns: whether a fiber was still waiting for that.
bool notify_awaiters(control_block& fiber) noexcept;
void disarm_own(timers& time, cold_part& part) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
