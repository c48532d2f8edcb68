// SPDX-License-Identifier: MIT
// Verbs on a fiber, from whatever thread: at home they act, from abroad they leave word in the
// fiber's one node, which its home thread finds. Nothing here allocates or throws but await().
#pragma once

#include <exception>
#include <motet/detail/core/handle.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool schedule(control_block& fiber, value_slot&& token) noexcept;
bool raise(control_block& fiber, std::exception_ptr error) noexcept;
cancel_result cancel(control_block& fiber, const cancel_reason& reason) noexcept;
cancel_result terminate(control_block& fiber, clock::duration grace,
                        const cancel_reason& reason) noexcept;
cancel_result stop(control_block& fiber, value_slot&& result, call_site site) noexcept;
/// A stop has been requested that may end a scope of the fiber.
void look_for_stops(control_block& fiber) noexcept;
void resume_with(control_block& fiber, std::uint64_t number, bool failing,
                 value_slot&& value) noexcept;

/// Does what other threads have asked of a fiber, in the order of their requests.
void do_requests(post& item, thread_state& home) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
