// SPDX-License-Identifier: MIT
// How a fiber is interrupted, or handed something. All are called on the fiber's home thread; for
// any thread there is cancellation/remote_verbs.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/family.hpp>
#include <motet/fibers/fiber_state.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: false if the body has been left, or another exception waits to be thrown.
bool raise_here(control_block& fiber, std::exception_ptr error) noexcept;
cancel_result cancel_here(control_block& fiber, const cancel_reason& reason) noexcept;
cancel_result terminate_here(control_block& fiber, clock::duration grace,
                             const cancel_reason& reason) noexcept;
void terminate_family(family& children, clock::duration grace,
                      const cancel_reason& reason) noexcept;
/// Ends the grace period of the fiber's termination, and of all fibers that it waits for.
void escalate_below(control_block& fiber) noexcept;

bool give_token(control_block& fiber, value_slot&& token) noexcept;
/// Cancels the fiber and decides what its result is.
cancel_result give_result(control_block& fiber, const cancel_reason& reason,
                          value_slot&& value) noexcept;
/// Ends the suspend_with() of that `number`, if the fiber is still in it.
void resume_here(control_block& fiber, std::uint64_t number, bool failing,
                 value_slot&& value) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
