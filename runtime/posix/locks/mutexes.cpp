// SPDX-License-Identifier: MIT
// pthread_mutex_lock(3) and its relatives.
#include "posix/locks/mutexes.hpp"

#include <pthread.h>
#include <time.h>

#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Source: glibc, nptl/pthreadP.h: the lowest bits are the type.
int type_of(const pthread_mutex_t& mutex) noexcept {
  return mutex.__data.__kind & 3;
}

bool has_owner(const pthread_mutex_t& mutex) noexcept {
  const int type = type_of(mutex);
  return type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE;
}

lock_request request_for(const pthread_mutex_t& mutex, const char* call,
                         const void* site) noexcept {
  lock_request request{&mutex, call, site};
  request.refuses_holder = type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK;
  return request;
}

[[gnu::noinline]] int lock_in_fiber(pthread_mutex_t* mutex, const void* site) noexcept {
  const lock_caller caller;
  return caller ? lock_mutex(caller, mutex, site) : real.pthread_mutex_lock(mutex);
}

[[gnu::noinline]] int unlock_in_fiber(pthread_mutex_t* mutex) noexcept {
  const lock_caller caller;
  return caller ? unlock_mutex(caller, mutex) : real.pthread_mutex_unlock(mutex);
}

[[gnu::noinline]] int try_in_fiber(pthread_mutex_t* mutex, const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_mutex_trylock(mutex);
  return detail::try_in_fiber(
      request_for(*mutex, "pthread_mutex_trylock", site), caller,
      [&] { return real.pthread_mutex_trylock(mutex); }, [&] { real.pthread_mutex_unlock(mutex); });
}

[[gnu::noinline]] int lock_until(pthread_mutex_t* mutex, clockid_t id, const timespec* limit,
                                 const void* site) noexcept {
  const auto lock = [&] { return real.pthread_mutex_clocklock(mutex, id, limit); };
  if (outside_of_fibers() || !is_usual_limit(id, limit)) return lock();
  const lock_caller caller;
  if (!caller) return lock();
  lock_request request = request_for(*mutex, "pthread_mutex_timedlock", site);
  request.due = due_at(caller.home(), id, *limit);
  return detail::lock_in_fiber(
      request, caller, [&] { return real.pthread_mutex_trylock(mutex); }, lock,
      [&] { real.pthread_mutex_unlock(mutex); });
}

}  // namespace

int lock_mutex(const lock_caller& caller, pthread_mutex_t* mutex, const void* site) noexcept {
  return detail::lock_in_fiber(
      request_for(*mutex, "pthread_mutex_lock", site), caller,
      [&] { return real.pthread_mutex_trylock(mutex); },
      [&] { return real.pthread_mutex_lock(mutex); }, [&] { real.pthread_mutex_unlock(mutex); });
}

int unlock_mutex(const lock_caller& caller, pthread_mutex_t* mutex) noexcept {
  return detail::unlock_in_fiber(mutex, has_owner(*mutex), caller,
                                 [&] { return real.pthread_mutex_unlock(mutex); });
}

}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_mutex_lock(mutex);
  return lock_in_fiber(mutex, __builtin_return_address(0));
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_mutex_unlock(mutex);
  return unlock_in_fiber(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_mutex_trylock(mutex);
  return try_in_fiber(mutex, __builtin_return_address(0));
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t id, const timespec* limit) noexcept {
  return lock_until(mutex, id, limit, __builtin_return_address(0));
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* limit) noexcept {
  return lock_until(mutex, CLOCK_REALTIME, limit, __builtin_return_address(0));
}

}  // extern "C"
