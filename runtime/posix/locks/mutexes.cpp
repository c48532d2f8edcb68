// SPDX-License-Identifier: MIT
// pthread_mutex_lock(3) and its relatives.
#include "posix/locks/mutexes.hpp"

#include <pthread.h>
#include <sys/single_threaded.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "core/mail/mailbox.hpp"
#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"
#include "posix/locks/lock_waits.hpp"
#include "posix/locks/owners.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Source: glibc, nptl/pthreadP.h: the lowest bits are the type.
int type_of(const pthread_mutex_t& mutex) noexcept {
  return mutex.__data.__kind & 3;
}

/// Whether it is of the default type, neither robust nor one that inherits priorities.
/// Source: glibc, nptl/pthreadP.h: PTHREAD_MUTEX_KIND_MASK_NP, and the bits of the protocols.
bool is_usual(const pthread_mutex_t& mutex) noexcept {
  return (mutex.__data.__kind & 127) == 0;
}

/// Whether a usual mutex was free, and is now locked. With one thread, which shares the mutex with
/// no other process, the library locks without a locked instruction, but pthread_mutex_trylock(3)
/// does not; nobody locks the mutex in between. Source: glibc, nptl/pthreadP.h: the bit of those
/// that processes share.
[[gnu::always_inline]] inline bool lock_free_mutex(pthread_mutex_t& mutex) noexcept {
  constexpr int shared = 128;
  if (!__libc_single_threaded || (mutex.__data.__kind & shared) != 0)
    return real.pthread_mutex_trylock(&mutex) == 0;
  return __atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) == 0 &&
         real.pthread_mutex_lock(&mutex) == 0;
}

bool has_owner(const pthread_mutex_t& mutex) noexcept {
  return type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK || type_of(mutex) == PTHREAD_MUTEX_RECURSIVE;
}

/// Source: glibc, nptl/pthreadP.h: robust mutexes and those that inherit priorities have their
/// owner in the lock word.
bool is_held_by(const pthread_mutex_t& mutex, const lock_caller& caller) noexcept {
  constexpr int robust_or_inheriting = 16 | 32;
  constexpr int number_bits = 0x3fffffff;
  const int thread = caller.home().mail().number_of_thread();
  if ((mutex.__data.__kind & robust_or_inheriting) != 0) [[unlikely]]
    return (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) & number_bits) == thread;
  return __atomic_load_n(&mutex.__data.__owner, __ATOMIC_RELAXED) == thread;
}

/// Returns: the fiber that owns a mutex which the thread owns; 0 if that is not known.
std::uint64_t owner_of(const pthread_mutex_t& mutex) noexcept {
  const lock_owners* const owners = lock_owners::of_thread();
  return owners == nullptr ? 0 : owners->owner_of(&mutex);
}

bool is_owned_by_other(const pthread_mutex_t& mutex, const lock_caller& caller) noexcept {
  const std::uint64_t owner = owner_of(mutex);
  return is_held_by(mutex, caller) && owner != 0 && owner != caller.fiber();
}

/// Called after a mutex with an owner was locked, or locked again. Returns: false if that was
/// another fiber's, which still has it then.
bool note_owner(pthread_mutex_t& mutex, const lock_caller& caller) noexcept {
  const bool is_again = type_of(mutex) == PTHREAD_MUTEX_RECURSIVE && mutex.__data.__count > 1;
  if (!is_again) {
    if (lock_owners* const owners = lock_owners::of_thread()) owners->set(&mutex, caller.fiber());
    return true;
  }
  if (!is_owned_by_other(mutex, caller)) return true;
  real.pthread_mutex_unlock(&mutex);
  return false;
}

/// A mutex, and the call of a fiber that locks it.
class mutex_call {
 public:
  mutex_call(pthread_mutex_t* mutex, const lock_caller& caller, const char* name,
             const void* site) noexcept
      : mutex_(*mutex), caller_(caller), name_(name), site_(site) {}
  mutex_call(pthread_mutex_t* mutex, const lock_caller& caller, clockid_t clock,
             const timespec* limit, const void* site) noexcept
      : mutex_(*mutex),
        caller_(caller),
        name_("pthread_mutex_timedlock"),
        site_(site),
        clock_(clock),
        limit_(limit) {}

  const void* address() const noexcept { return &mutex_; }
  const char* name() const noexcept { return name_; }
  const void* site() const noexcept { return site_; }
  int try_lock() const noexcept { return note(real.pthread_mutex_trylock(&mutex_)); }
  /// Fibers of the thread that wait for it come first, unless this one has it already.
  int try_in_turn() const noexcept {
    const bool waits = lock_waits::of_thread().is_awaited(&mutex_) &&
                       (!has_owner(mutex_) || owner_of(mutex_) != caller_.fiber());
    return waits ? EBUSY : try_lock();
  }
  int lock() const noexcept {
    return note(limit_ == nullptr ? real.pthread_mutex_lock(&mutex_)
                                  : real.pthread_mutex_clocklock(&mutex_, clock_, limit_));
  }
  std::optional<int> lock_briefly() const noexcept {
    constexpr long moment = 200'000;
    timespec limit{};
    ::clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += moment;
    if (limit.tv_nsec >= 1'000'000'000) limit = {limit.tv_sec + 1, limit.tv_nsec - 1'000'000'000};
    return note(real.pthread_mutex_clocklock(&mutex_, CLOCK_MONOTONIC, &limit));
  }
  bool is_held_here() const noexcept { return is_held_by(mutex_, caller_); }
  bool may_block() const noexcept { return !has_owner(mutex_); }

 private:
  /// Some kinds report EDEADLK to any fiber of the thread that owns them.
  int note(int error) const noexcept {
    if (has_owner(mutex_)) [[unlikely]] {
      if (means_locked(error)) return note_owner(mutex_, caller_) ? note_site(error) : EBUSY;
      return error == EDEADLK && is_owned_by_other(mutex_, caller_) ? EBUSY : error;
    }
    return means_locked(error) ? note_site(error) : error;
  }
  int note_site(int error) const noexcept {
    lock_waits::of_thread().note(&mutex_, site_, caller_.fiber());
    return error;
  }

  pthread_mutex_t& mutex_;
  const lock_caller& caller_;
  const char* const name_;
  const void* const site_;
  const clockid_t clock_ = CLOCK_REALTIME;
  const timespec* const limit_ = nullptr;
};

/// Whether a fiber locks an error-checking mutex that it owns.
bool is_refused(const pthread_mutex_t& mutex, const lock_caller& caller) noexcept {
  return type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK && is_held_by(mutex, caller) &&
         owner_of(mutex) == caller.fiber();
}

[[gnu::noinline]] int lock_in_turn(pthread_mutex_t* mutex, const void* site) noexcept {
  const lock_caller caller;
  const mutex_call call(mutex, caller, "pthread_mutex_lock", site);
  const int error = call.try_in_turn();
  if (error != EBUSY) return error;
  return is_refused(*mutex, caller) ? EDEADLK : await_lock(call, caller, no_limit);
}

/// Called before the mutex is unlocked. Returns: EPERM if another fiber of the thread owns it.
[[gnu::noinline]] int forget_owner(const pthread_mutex_t& mutex,
                                   const lock_caller& caller) noexcept {
  if (is_owned_by_other(mutex, caller)) return EPERM;
  const bool is_last = type_of(mutex) != PTHREAD_MUTEX_RECURSIVE || mutex.__data.__count <= 1;
  lock_owners* const owners = lock_owners::of_thread();
  if (is_last && owners != nullptr && is_held_by(mutex, caller)) owners->forget(&mutex);
  return 0;
}

/// A usual mutex that is free, while no fiber of the thread waits for any: most calls end here.
[[gnu::always_inline]] inline int lock_by_fiber(thread_state& home, pthread_mutex_t* mutex,
                                                const void* site) noexcept {
  const lock_caller caller(home);
  if (!caller) return real.pthread_mutex_lock(mutex);
  lock_waits& waits = lock_waits::of_thread();
  const bool is_free = is_usual(*mutex) && !waits.any() && lock_free_mutex(*mutex);
  if (!is_free) return lock_in_turn(mutex, site);
  waits.note(mutex, site, caller.fiber());
  return 0;
}

/// Nothing of the mutex is read after it is unlocked: another thread may have destroyed it.
[[gnu::always_inline]] inline int unlock_by_fiber(thread_state& home,
                                                  pthread_mutex_t* mutex) noexcept {
  const lock_caller caller(home);
  if (!caller) return real.pthread_mutex_unlock(mutex);
  int error = has_owner(*mutex) ? forget_owner(*mutex, caller) : 0;
  if (error != 0) return error;
  error = real.pthread_mutex_unlock(mutex);
  lock_waits::of_thread().unlocked(mutex);
  return error;
}

}  // namespace

int lock_mutex(pthread_mutex_t* mutex, const void* site) noexcept {
  return lock_by_fiber(*self(), mutex, site);
}

int unlock_mutex(pthread_mutex_t* mutex) noexcept {
  return unlock_by_fiber(*self(), mutex);
}

int try_mutex(pthread_mutex_t* mutex, const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_mutex_trylock(mutex);
  return mutex_call(mutex, caller, "pthread_mutex_trylock", site).try_lock();
}

/// The limit is looked at only if the mutex is held.
int lock_mutex_until(pthread_mutex_t* mutex, clockid_t id, const timespec* limit,
                     const void* site) noexcept {
  const lock_caller caller;
  if (!caller) return real.pthread_mutex_clocklock(mutex, id, limit);
  const mutex_call call(mutex, caller, id, limit, site);
  const int error = call.try_in_turn();
  if (error != EBUSY) return error;
  if (!is_usual_limit(id, limit)) return EINVAL;
  if (is_refused(*mutex, caller)) return EDEADLK;
  return await_lock(call, caller, due_at(caller.home(), id, *limit));
}

}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  thread_state* const home = self();
  if (home == nullptr) [[likely]]
    return real.pthread_mutex_lock(mutex);
  return lock_by_fiber(*home, mutex, __builtin_return_address(0));
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  thread_state* const home = self();
  if (home == nullptr) [[likely]]
    return real.pthread_mutex_unlock(mutex);
  return unlock_by_fiber(*home, mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (outside_of_fibers()) [[likely]]
    return real.pthread_mutex_trylock(mutex);
  return try_mutex(mutex, __builtin_return_address(0));
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t id, const timespec* limit) noexcept {
  if (outside_of_fibers()) return real.pthread_mutex_clocklock(mutex, id, limit);
  return lock_mutex_until(mutex, id, limit, __builtin_return_address(0));
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* limit) noexcept {
  if (outside_of_fibers()) return real.pthread_mutex_clocklock(mutex, CLOCK_REALTIME, limit);
  return lock_mutex_until(mutex, CLOCK_REALTIME, limit, __builtin_return_address(0));
}

}  // extern "C"
