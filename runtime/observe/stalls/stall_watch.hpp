// SPDX-License-Identifier: MIT
// A plain thread that looks at the process's motet threads whose options have a stall_report, and
// names a fiber that holds its thread for longer. It looks from outside: a timer of the thread's
// own would end the very system call that is to be reported.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <motet/observe/stats.hpp>
#include <motet/runtime/options.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Begins to monitor as often as `settings` wants it, if nobody does yet. Threads are monitored
/// from when their entry in the thread registry says so.
/// Throws: std::system_error; std::bad_alloc.
void monitor_stalls(const options& settings);
/// Called before this thread's runtime ends: returns when no report about it is in progress.
void stop_monitoring(const thread_state& thread) noexcept;
/// Called in a forked child, which is not monitored until a runtime begins there.
void forget_monitor() noexcept;

/// Returns: the stalls so far, by call site.
/// Throws: std::bad_alloc.
std::vector<stall_stats> stalls_so_far();

}}}  // namespace motet::MOTET_ABI::detail
