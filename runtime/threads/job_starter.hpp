// SPDX-License-Identifier: MIT
// How a thread starts and stops accepting the jobs of other threads.
#pragma once

#include "core/thread_state.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Spawns a fiber that starts the jobs in `inbox`. A push wakes this thread, which does not count
/// as deadlocked.
/// Throws: std::bad_alloc.
void accept_jobs(thread_state& home, std::shared_ptr<job_inbox> inbox);
/// Accepts no more jobs, and ends the job starter's fiber. The remaining jobs are destroyed here,
/// unstarted. The running fiber must be under a shield.
void accept_no_more_jobs(thread_state& home) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
