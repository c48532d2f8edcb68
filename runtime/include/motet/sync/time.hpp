// SPDX-License-Identifier: MIT
// Sleeping.
#pragma once

#include <motet/base/clock.hpp>
#include <motet/detail/base/timespan.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Sleeps until `deadline`, never less; if `deadline` has passed, yields to the other runnable
/// fibers.
/// Switchpoint.
/// Throws: a pending interruption.
void sleep_until(clock::time_point deadline);

/// Sleeps for `span`, never less; in any unit and of any length, even longer than any clock can
/// run. A thread on which no other fiber can run sleeps for 50 us or longer, unless something other
/// than a timer wakes it.
/// Switchpoint.
/// Throws: a pending interruption.
void sleep_for(detail::timespan span);

/// Sleeps until this fiber is interrupted.
/// Switchpoint.
/// Throws: a pending interruption.
[[noreturn]] void sleep();

}}  // namespace motet::MOTET_ABI
