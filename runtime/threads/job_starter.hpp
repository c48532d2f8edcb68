// SPDX-License-Identifier: MIT
// How a thread begins and ends to take what other threads leave for it.
#pragma once

#include "core/thread_state.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Starts a fiber that starts what others leave in `from`: a thread that leaves a job can wake this
/// thread, which is never stuck.
/// Throws: std::bad_alloc.
void take_jobs(thread_state& home, std::shared_ptr<job_inbox> from);
/// Takes no more, and leaves undone what has not been started; then that fiber ends. The running
/// fiber is under a shield: what is left is destroyed here.
void take_no_more_jobs(thread_state& home) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
