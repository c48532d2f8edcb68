// SPDX-License-Identifier: MIT
// Verbs on a fiber, from whatever thread: at home they act, from abroad they leave word in the
// fiber's one node, which its home thread finds. Nothing here allocates or throws but await().
#pragma once

#include <exception>

#include "control_block.hpp"

namespace motet::inline MOTET_ABI::detail {

void retain(control_block& fiber) noexcept;
void release(control_block& fiber) noexcept;

bool schedule(control_block& fiber, value_slot&& token) noexcept;
bool raise(control_block& fiber, std::exception_ptr error) noexcept;
cancel_result cancel(control_block& fiber, const char* reason) noexcept;
cancel_result stop(control_block& fiber, value_slot&& result) noexcept;
void resume_with(control_block& fiber, std::uint64_t number, bool broken,
                 value_slot&& value) noexcept;

/// Waits until `fiber` is dead: parks a fiber, or blocks a thread that has no runtime.
/// Throws: std::logic_error if it is the running fiber; what interrupts the wait.
void await_end(control_block& fiber);

}  // namespace motet::inline MOTET_ABI::detail
