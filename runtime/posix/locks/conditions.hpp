// SPDX-License-Identifier: MIT
// Condition variables, for the functions that wait for them under other names.
#pragma once

#include <pthread.h>
#include <time.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As pthread_cond_wait(3) and pthread_cond_timedwait(3), called at `site`.
int wait_for_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, const void* site);
int wait_for_condition_until(pthread_cond_t* condition, pthread_mutex_t* mutex,
                             const timespec* limit, const void* site);

}}}  // namespace motet::MOTET_ABI::detail
