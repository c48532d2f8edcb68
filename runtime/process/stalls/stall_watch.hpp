// SPDX-License-Identifier: MIT
// A plain thread that looks at the process's motet threads whose options have a stall_report, and
// names a fiber that holds its thread for longer. It looks from outside: a timer of the thread's
// own would end the very system call that is to be reported.
#pragma once

#include <motet/detail/words/abi.hpp>
#include <motet/stats.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The name of that thread, which wakes no fiber.
inline constexpr char name_of_stall_watch[] = "motet watch";

/// Begins to watch, if nobody does yet.
/// Throws: std::system_error.
void watch_stalls();
/// Called in a forked child, which is not watched until a runtime begins there.
void watch_no_more() noexcept;

/// Returns: what has been seen so far, by site.
/// Throws: std::bad_alloc.
std::vector<stall_stats> stalls_so_far();

}}}  // namespace motet::MOTET_ABI::detail
