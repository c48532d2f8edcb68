// SPDX-License-Identifier: MIT
// pthread_spin_lock(3) and its relatives.
#include <pthread.h>

#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

const void* address_of(const volatile int* lock) noexcept {
  return const_cast<const int*>(lock);
}

[[gnu::noinline]] int spin_in_fiber(pthread_spinlock_t* lock, const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_spin_lock(lock);
  return lock_in_fiber(
      {address_of(lock), "pthread_spin_lock", site}, caller,
      [&] { return real.pthread_spin_trylock(lock); }, [&] { return real.pthread_spin_lock(lock); },
      [] {});
}

[[gnu::noinline]] int try_spin_in_fiber(pthread_spinlock_t* lock, const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_spin_trylock(lock);
  return try_in_fiber(
      {address_of(lock), "pthread_spin_trylock", site}, caller,
      [&] { return real.pthread_spin_trylock(lock); }, [] {});
}

[[gnu::noinline]] int unlock_spin_in_fiber(pthread_spinlock_t* lock) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_spin_unlock(lock);
  return unlock_in_fiber(address_of(lock), false, caller,
                         [&] { return real.pthread_spin_unlock(lock); });
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_spin_lock(lock);
  return spin_in_fiber(lock, __builtin_return_address(0));
}

int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_spin_trylock(lock);
  return try_spin_in_fiber(lock, __builtin_return_address(0));
}

int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_spin_unlock(lock);
  return unlock_spin_in_fiber(lock);
}

}  // extern "C"
