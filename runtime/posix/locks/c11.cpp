// SPDX-License-Identifier: MIT
// The locks of C11, which glibc makes of those of POSIX under other names.
// Source: glibc, nptl/mtx_lock.c and its neighbours.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cerrno>

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

extern "C" {

int mtx_lock(mtx_t* mutex) {
  return status_of(::pthread_mutex_lock(posix(mutex)));
}

int mtx_trylock(mtx_t* mutex) {
  return status_of(::pthread_mutex_trylock(posix(mutex)));
}

int mtx_timedlock(mtx_t* mutex, const timespec* limit) {
  return status_of(::pthread_mutex_timedlock(posix(mutex), limit));
}

int mtx_unlock(mtx_t* mutex) {
  return status_of(::pthread_mutex_unlock(posix(mutex)));
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return status_of(::pthread_cond_wait(posix(condition), posix(mutex)));
}

int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* limit) {
  return status_of(::pthread_cond_timedwait(posix(condition), posix(mutex), limit));
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
