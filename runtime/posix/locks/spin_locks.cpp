// SPDX-License-Identifier: MIT
// pthread_spin_lock(3) and its relatives. Such a lock does not say who holds it: a fiber spins for
// a moment, as for another thread, and then waits.
#include <pthread.h>

#include <cerrno>
#include <optional>

#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"
#include "posix/locks/lock_waits.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

class spin_call {
 public:
  spin_call(pthread_spinlock_t* lock, const void* site) noexcept : lock_(lock), site_(site) {}

  const void* address() const noexcept { return const_cast<const int*>(lock_); }
  static const char* name() noexcept { return "pthread_spin_lock"; }
  const void* site() const noexcept { return site_; }
  int try_lock() const noexcept { return real.pthread_spin_trylock(lock_); }
  int lock() const noexcept { return real.pthread_spin_lock(lock_); }
  std::optional<int> lock_briefly() const noexcept {
    for (int i = 0; i < 1'000; ++i) {
      if (real.pthread_spin_trylock(lock_) == 0) return 0;
    }
    return std::nullopt;
  }
  static bool is_held_here() noexcept { return false; }
  static bool may_block() noexcept { return true; }

 private:
  pthread_spinlock_t* const lock_;
  const void* const site_;
};

[[gnu::noinline]] int spin_in_fiber(pthread_spinlock_t* lock, const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_spin_lock(lock);
  const spin_call call(lock, site);
  const int error = call.try_lock();
  return error != EBUSY ? error : await_lock(call, caller, no_limit);
}

[[gnu::noinline]] int unlock_in_fiber(pthread_spinlock_t* lock) noexcept {
  const int error = real.pthread_spin_unlock(lock);
  lock_waits::of_thread().unlocked(const_cast<const int*>(lock));
  return error;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_spin_lock(lock);
  return spin_in_fiber(lock, __builtin_return_address(0));
}

int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_spin_unlock(lock);
  return unlock_in_fiber(lock);
}

}  // extern "C"
