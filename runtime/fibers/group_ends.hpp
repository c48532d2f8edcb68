// SPDX-License-Identifier: MIT
// What a group notes when its fibers end: slots for others, which fibers have ended, what has
// failed. On the owner's thread.
#pragma once

#include <motet/detail/core/family.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Reserves one of the group's limited slots for a fiber; waits until one is free.
/// Throws: a pending interruption; `cancelled` if the group ends meanwhile.
void reserve_slot(group_family& group, thread_state& thread);
/// Called when there is a slot that no fiber has reserved.
void offer_slot(group_family& group) noexcept;

/// A fiber of the group has ended; `in_hand`: there is a handle to that fiber.
[[gnu::noinline]] void note_end(group_family& group, control_block& child, bool in_hand) noexcept;
/// A fiber of the group has failed.
/// Returns: whether it is the first since the group was empty, which cancels the rest.
bool note_failure(group_family& group, control_block& child) noexcept;
/// Forgets what next() and failures() could still tell, and who waits for a slot.
void forget_ends(group_family& group) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
