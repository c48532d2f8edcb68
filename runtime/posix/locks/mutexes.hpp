// SPDX-License-Identifier: MIT
// Mutexes, for the functions that lock and unlock them under other names, or on behalf of others.
#pragma once

#include <pthread.h>
#include <time.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As pthread_mutex_lock(3) and its relatives, called at `site`.
int lock_mutex(pthread_mutex_t* mutex, const void* site) noexcept;
int try_mutex(pthread_mutex_t* mutex, const void* site) noexcept;
int lock_mutex_until(pthread_mutex_t* mutex, clockid_t id, const timespec* limit,
                     const void* site) noexcept;
int unlock_mutex(pthread_mutex_t* mutex) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
