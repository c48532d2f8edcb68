// SPDX-License-Identifier: MIT
// pthread_rwlock_rdlock(3) and its relatives.
#include <pthread.h>
#include <time.h>

#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// The library's calls for one of the two modes.
struct mode {
  const char* call;
  int (*try_lock)(pthread_rwlock_t*) noexcept;
  int (*lock)(pthread_rwlock_t*) noexcept;
  int (*lock_until)(pthread_rwlock_t*, clockid_t, const timespec*) noexcept;
};

mode reading() noexcept {
  return {"pthread_rwlock_rdlock", real.pthread_rwlock_tryrdlock, real.pthread_rwlock_rdlock,
          real.pthread_rwlock_clockrdlock};
}

mode writing() noexcept {
  return {"pthread_rwlock_wrlock", real.pthread_rwlock_trywrlock, real.pthread_rwlock_wrlock,
          real.pthread_rwlock_clockwrlock};
}

lock_request request_for(const pthread_rwlock_t* lock, const mode& how, const void* site) noexcept {
  lock_request request{lock, how.call, site};
  request.shares = true;  // the library refuses what may not be shared
  request.refuses_holder = true;
  return request;
}

int lock_rwlock(pthread_rwlock_t* lock, const mode& how, const void* site) noexcept {
  const auto block = [&] { return how.lock(lock); };
  if (outside_of_fibers()) [[likely]]
    return block();
  const lock_caller caller;
  if (!caller) return block();
  return lock_in_fiber(
      request_for(lock, how, site), caller, [&] { return how.try_lock(lock); }, block, [] {});
}

int lock_rwlock_until(pthread_rwlock_t* lock, const mode& how, clockid_t id, const timespec* limit,
                      const void* site) noexcept {
  const auto block = [&] { return how.lock_until(lock, id, limit); };
  if (outside_of_fibers() || !is_usual_limit(id, limit)) return block();
  const lock_caller caller;
  if (!caller) return block();
  lock_request request = request_for(lock, how, site);
  request.due = due_at(caller.home(), id, *limit);
  return lock_in_fiber(request, caller, [&] { return how.try_lock(lock); }, block, [] {});
}

int try_rwlock(pthread_rwlock_t* lock, const mode& how, const void* site) noexcept {
  const auto try_lock = [&] { return how.try_lock(lock); };
  if (outside_of_fibers()) return try_lock();
  const lock_caller caller;
  if (!caller) return try_lock();
  return try_in_fiber(request_for(lock, how, site), caller, try_lock, [] {});
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return lock_rwlock(lock, reading(), __builtin_return_address(0));
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return lock_rwlock(lock, writing(), __builtin_return_address(0));
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return try_rwlock(lock, reading(), __builtin_return_address(0));
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return try_rwlock(lock, writing(), __builtin_return_address(0));
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t id,
                               const timespec* limit) noexcept {
  return lock_rwlock_until(lock, reading(), id, limit, __builtin_return_address(0));
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t id,
                               const timespec* limit) noexcept {
  return lock_rwlock_until(lock, writing(), id, limit, __builtin_return_address(0));
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  return lock_rwlock_until(lock, reading(), CLOCK_REALTIME, limit, __builtin_return_address(0));
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  return lock_rwlock_until(lock, writing(), CLOCK_REALTIME, limit, __builtin_return_address(0));
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  const auto unlock = [&] { return real.pthread_rwlock_unlock(lock); };
  if (outside_of_fibers()) [[likely]]
    return unlock();
  const lock_caller caller;
  return caller ? unlock_in_fiber(lock, false, caller, unlock) : unlock();
}

}  // extern "C"
