// SPDX-License-Identifier: MIT
// pthread_rwlock_rdlock(3) and its relatives.
#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <optional>

#include "core/mail/mailbox.hpp"
#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"
#include "posix/locks/lock_waits.hpp"
#include "posix/locks/owners.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// The library's calls for one of the two modes.
struct mode {
  const char* call;
  bool writes;
  int (*try_lock)(pthread_rwlock_t*) noexcept;
  int (*lock)(pthread_rwlock_t*) noexcept;
  int (*lock_until)(pthread_rwlock_t*, clockid_t, const timespec*) noexcept;
};

mode reading() noexcept {
  return {"pthread_rwlock_rdlock", false, real.pthread_rwlock_tryrdlock, real.pthread_rwlock_rdlock,
          real.pthread_rwlock_clockrdlock};
}

mode writing() noexcept {
  return {"pthread_rwlock_wrlock", true, real.pthread_rwlock_trywrlock, real.pthread_rwlock_wrlock,
          real.pthread_rwlock_clockwrlock};
}

/// Whether the thread has it for writing. Of readers the library keeps the number only.
bool is_written_by(const pthread_rwlock_t& lock, const lock_caller& caller) noexcept {
  return __atomic_load_n(&lock.__data.__cur_writer, __ATOMIC_RELAXED) ==
         caller.home().mail().number_of_thread();
}

/// A lock, and the call of a fiber that locks it.
class rwlock_call {
 public:
  rwlock_call(pthread_rwlock_t* lock, const mode& access, const lock_caller& caller,
              const void* site, clockid_t clock = CLOCK_REALTIME,
              const timespec* limit = nullptr) noexcept
      : lock_(*lock), access_(access), caller_(caller), site_(site), clock_(clock), limit_(limit) {}

  const void* address() const noexcept { return &lock_; }
  const char* name() const noexcept { return access_.call; }
  const void* site() const noexcept { return site_; }
  int try_lock() const noexcept { return note(access_.try_lock(&lock_)); }
  /// Fibers of the thread that wait for it come first.
  int try_in_turn() const noexcept {
    return lock_waits::of_thread().is_awaited(&lock_) ? EBUSY : try_lock();
  }
  int lock() const noexcept {
    return note(limit_ == nullptr ? access_.lock(&lock_)
                                  : access_.lock_until(&lock_, clock_, limit_));
  }
  static std::optional<int> lock_briefly() noexcept { return std::nullopt; }
  bool is_held_here() const noexcept { return is_written_by(lock_, caller_); }
  static bool may_block() noexcept { return false; }
  /// Whether the fiber has it for writing.
  bool is_refused() const noexcept {
    const lock_owners* const owners = lock_owners::of_thread();
    return is_held_here() && owners != nullptr && owners->owner_of(&lock_) == caller_.fiber();
  }

 private:
  int note(int error) const noexcept {
    if (error != 0) return error;
    lock_waits::of_thread().note(&lock_, site_, caller_.fiber());
    lock_owners* const owners = access_.writes ? lock_owners::of_thread() : nullptr;
    if (owners != nullptr) owners->set(&lock_, caller_.fiber());
    return 0;
  }

  pthread_rwlock_t& lock_;
  const mode& access_;
  const lock_caller& caller_;
  const void* const site_;
  const clockid_t clock_;
  const timespec* const limit_;
};

[[gnu::noinline]] int lock_in_fiber(pthread_rwlock_t* lock, const mode& access,
                                    const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return access.lock(lock);
  const rwlock_call call(lock, access, caller, site);
  const int error = call.try_in_turn();
  if (error != EBUSY) return error;
  return call.is_refused() ? EDEADLK : await_lock(call, caller, no_limit);
}

int lock_until(pthread_rwlock_t* lock, const mode& access, clockid_t id, const timespec* limit,
               const void* site) noexcept {
  if (outside_of_fibers()) return access.lock_until(lock, id, limit);
  const lock_caller caller;
  if (!caller || !is_usual_limit(id, limit)) return access.lock_until(lock, id, limit);
  const rwlock_call call(lock, access, caller, site, id, limit);
  const int error = call.try_in_turn();
  if (error != EBUSY) return error;
  if (call.is_refused()) return EDEADLK;
  return await_lock(call, caller, due_at(caller.home(), id, *limit));
}

int try_rwlock(pthread_rwlock_t* lock, const mode& access, const void* site) noexcept {
  if (outside_of_fibers()) return access.try_lock(lock);
  const lock_caller caller;
  return caller ? rwlock_call(lock, access, caller, site).try_lock() : access.try_lock(lock);
}

[[gnu::noinline]] int unlock_in_fiber(pthread_rwlock_t* lock) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_rwlock_unlock(lock);
  lock_owners* const owners = lock_owners::of_thread();
  if (owners != nullptr && is_written_by(*lock, caller)) owners->forget(lock);
  const int error = real.pthread_rwlock_unlock(lock);
  lock_waits::of_thread().unlocked(lock);
  return error;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_rwlock_rdlock(lock);
  return lock_in_fiber(lock, reading(), __builtin_return_address(0));
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_rwlock_wrlock(lock);
  return lock_in_fiber(lock, writing(), __builtin_return_address(0));
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return try_rwlock(lock, reading(), __builtin_return_address(0));
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return try_rwlock(lock, writing(), __builtin_return_address(0));
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t id,
                               const timespec* limit) noexcept {
  return lock_until(lock, reading(), id, limit, __builtin_return_address(0));
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t id,
                               const timespec* limit) noexcept {
  return lock_until(lock, writing(), id, limit, __builtin_return_address(0));
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  return lock_until(lock, reading(), CLOCK_REALTIME, limit, __builtin_return_address(0));
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  return lock_until(lock, writing(), CLOCK_REALTIME, limit, __builtin_return_address(0));
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_rwlock_unlock(lock);
  return unlock_in_fiber(lock);
}

}  // extern "C"
