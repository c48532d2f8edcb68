// SPDX-License-Identifier: MIT
// Locks of the C library, locked by fibers. A fiber that finds a lock held by another fiber of its
// thread waits in motet; for another thread, which does not need this one to go on, it blocks.
#pragma once

#include <algorithm>
#include <cerrno>

#include "core/thread_state.hpp"
#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/holders.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Who makes a call: a fiber, or anybody else, for whom the library does. Made where the call is
/// not outside_of_fibers().
class lock_caller {
 public:
  lock_caller() noexcept : home_(self()) {
    if (home_->schedule.in_backend || home_->foreign || is_switched_off_for_locks) return;
    holders_ = lock_holders::of_thread();
  }

  explicit operator bool() const noexcept { return holders_ != nullptr; }
  bool may_wait() const noexcept { return !calls_are_plain(*home_) && !must_not_switch(*home_); }
  thread_state& home() const noexcept { return *home_; }
  const control_block& fiber() const noexcept { return home_->running(); }
  lock_holders& holders() const noexcept { return *holders_; }

 private:
  thread_state* const home_;
  lock_holders* holders_ = nullptr;
};

/// What a call does to a lock.
struct lock_request {
  const void* address;
  const char* call;
  const void* site;
  bool shares = false;          // other fibers may hold it as well
  bool refuses_holder = false;  // its holder gets EDEADLK
  clock::time_point due = no_limit;
};

constexpr bool means_locked(int error) noexcept {
  return error == 0 || error == EOWNERDEAD;
}

/// Tries a lock. One that the library gives twice to a thread goes back if another fiber has it.
/// Returns: an error, as pthread_mutex_trylock(3).
template <typename Try, typename Unlock>
int try_in_fiber(const lock_request& request, const lock_caller& caller, Try try_lock,
                 Unlock unlock) noexcept {
  const int error = try_lock();
  if (!means_locked(error)) return error;
  held_lock& entry = caller.holders().entry_of(request.address);
  if (entry.address != nullptr && !request.shares && !entry.is_of(caller.fiber())) {
    unlock();
    return EBUSY;
  }
  caller.holders().note(entry, request.address, caller.fiber(), request.site);
  return error;
}

/// Called when a fiber of the thread holds the lock, perhaps the caller itself.
/// Returns: whether the fiber has waited; otherwise the library's call is to be made.
bool await_holder(const lock_request& request, const lock_caller& caller, bool is_first) noexcept;

/// The rest of lock_in_fiber() for a lock that was not free.
template <typename Try, typename Lock, typename Unlock>
[[gnu::noinline]] int await_lock(const lock_request& request, const lock_caller& caller,
                                 Try try_lock, Lock lock, Unlock unlock) noexcept {
  for (bool is_first = true;; is_first = false) {
    if (request.due != no_limit && caller.home().time.now() >= request.due) return ETIMEDOUT;
    const bool is_held_here = caller.holders().entry_of(request.address).address != nullptr;
    if (!is_held_here || !await_holder(request, caller, is_first)) break;
    const int error = try_in_fiber(request, caller, try_lock, unlock);
    if (error != EBUSY) return error;
  }
  const int error = lock();
  if (means_locked(error)) {
    held_lock& entry = caller.holders().entry_of(request.address);
    caller.holders().note(entry, request.address, caller.fiber(), request.site);
  }
  return error;
}

/// Locks it: `try_lock()` and `lock()` are the library's calls, of which the second may block.
/// Returns: an error, as pthread_mutex_clocklock(3).
template <typename Try, typename Lock, typename Unlock>
int lock_in_fiber(const lock_request& request, const lock_caller& caller, Try try_lock, Lock lock,
                  Unlock unlock) noexcept {
  const int error = try_in_fiber(request, caller, try_lock, unlock);
  return error == EBUSY ? await_lock(request, caller, try_lock, lock, unlock) : error;
}

/// `refuses_others`: only the fiber that holds it may unlock it.
template <typename Unlock>
int unlock_in_fiber(const void* address, bool refuses_others, const lock_caller& caller,
                    Unlock unlock) noexcept {
  held_lock& entry = caller.holders().entry_of(address);
  const bool is_held_here = entry.address != nullptr;
  if (is_held_here && refuses_others && !entry.is_of(caller.fiber())) return EPERM;
  const int error = unlock();
  if (error == 0 && is_held_here) caller.holders().remove(entry, caller.home());
  return error;
}

}}}  // namespace motet::MOTET_ABI::detail
