// SPDX-License-Identifier: MIT
// The locks of C11, which glibc makes of those of POSIX under other names.
// Source: glibc, nptl/mtx_lock.c and its neighbours.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cerrno>

#include "posix/caller.hpp"
#include "posix/locks/conditions.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/mutexes.hpp"

namespace {

int status_of(int error) noexcept {
  switch (error) {
    case 0:
      return thrd_success;
    case EBUSY:
      return thrd_busy;
    case ETIMEDOUT:
      return thrd_timedout;
    case ENOMEM:
      return thrd_nomem;
    default:
      return thrd_error;
  }
}

pthread_mutex_t* posix(mtx_t* mutex) noexcept {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* posix(cnd_t* condition) noexcept {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

}  // namespace

using namespace motet::detail;

extern "C" {

int mtx_lock(mtx_t* mutex) {
  if (outside_of_fibers()) return status_of(real.pthread_mutex_lock(posix(mutex)));
  return status_of(lock_mutex(posix(mutex), __builtin_return_address(0)));
}

int mtx_trylock(mtx_t* mutex) {
  if (outside_of_fibers()) return status_of(real.pthread_mutex_trylock(posix(mutex)));
  return status_of(try_mutex(posix(mutex), __builtin_return_address(0)));
}

int mtx_timedlock(mtx_t* mutex, const timespec* limit) {
  if (outside_of_fibers())
    return status_of(real.pthread_mutex_clocklock(posix(mutex), CLOCK_REALTIME, limit));
  return status_of(
      lock_mutex_until(posix(mutex), CLOCK_REALTIME, limit, __builtin_return_address(0)));
}

int mtx_unlock(mtx_t* mutex) {
  return status_of(::pthread_mutex_unlock(posix(mutex)));
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return status_of(wait_for_condition(posix(condition), posix(mutex), __builtin_return_address(0)));
}

int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* limit) {
  return status_of(
      wait_for_condition_until(posix(condition), posix(mutex), limit, __builtin_return_address(0)));
}

int cnd_signal(cnd_t* condition) {
  return status_of(::pthread_cond_signal(posix(condition)));
}

int cnd_broadcast(cnd_t* condition) {
  return status_of(::pthread_cond_broadcast(posix(condition)));
}

void call_once(once_flag* flag, void (*function)()) {
  ::pthread_once(reinterpret_cast<pthread_once_t*>(flag), function);
}

}  // extern "C"
