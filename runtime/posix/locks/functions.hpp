// SPDX-License-Identifier: MIT
// The functions of the C and C++ libraries that motet-posix-locks stands before, in the order of
// docs/unmodified.md. It defines them all but pthread_spin_trylock(3), which never waits.
#pragma once

#include <pthread.h>

#include <motet/detail/base/abi.hpp>

/// Calls X(name) for each of POSIX; those of C11 are the same under other names.
#define MOTET_LOCK_FUNCTIONS(X) \
  X(pthread_mutex_lock)         \
  X(pthread_mutex_trylock)      \
  X(pthread_mutex_clocklock)    \
  X(pthread_mutex_unlock)       \
  X(pthread_rwlock_rdlock)      \
  X(pthread_rwlock_tryrdlock)   \
  X(pthread_rwlock_clockrdlock) \
  X(pthread_rwlock_wrlock)      \
  X(pthread_rwlock_trywrlock)   \
  X(pthread_rwlock_clockwrlock) \
  X(pthread_rwlock_unlock)      \
  X(pthread_spin_lock)          \
  X(pthread_spin_trylock)       \
  X(pthread_spin_unlock)        \
  X(pthread_cond_wait)          \
  X(pthread_cond_timedwait)     \
  X(pthread_cond_clockwait)     \
  X(pthread_cond_signal)        \
  X(pthread_cond_broadcast)     \
  X(pthread_barrier_wait)

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct lock_library {
#define MOTET_LOCK_POINTER(name) decltype(&::name) name;  // NOLINT(bugprone-macro-parentheses)
  MOTET_LOCK_FUNCTIONS(MOTET_LOCK_POINTER)
#undef MOTET_LOCK_POINTER
};

/// As `libc` in posix/functions.hpp.
[[gnu::visibility("hidden")]] extern constinit lock_library real;
[[gnu::visibility("hidden")]] extern constinit bool is_switched_off_for_locks;

}}}  // namespace motet::MOTET_ABI::detail
