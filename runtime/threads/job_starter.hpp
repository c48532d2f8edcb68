// SPDX-License-Identifier: MIT
// How a thread begins and ends to take what other threads leave for it.
#pragma once

#include "core/thread_state.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Starts a fiber that starts what others leave in `inbox`: a thread that leaves a job can wake
/// this thread, which is never stuck.
/// Throws: std::bad_alloc.
void take_jobs(thread_state& home, std::shared_ptr<job_inbox> inbox);
/// Accepts no more jobs, and ends the job starter's fiber. The remaining jobs are destroyed here,
/// unstarted. The running fiber must be under a shield.
void take_no_more_jobs(thread_state& home) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
