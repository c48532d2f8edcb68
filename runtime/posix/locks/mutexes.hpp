// SPDX-License-Identifier: MIT
// Mutexes, for the functions that lock and unlock them on behalf of others.
#pragma once

#include <pthread.h>

#include "posix/locks/lock_in_fiber.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As pthread_mutex_lock(3), called by a fiber at `site`.
int lock_mutex(const lock_caller& caller, pthread_mutex_t* mutex, const void* site) noexcept;
/// As pthread_mutex_unlock(3).
int unlock_mutex(const lock_caller& caller, pthread_mutex_t* mutex) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
