// SPDX-License-Identifier: MIT
// Locks of the C library, locked by fibers. A fiber that finds a lock held waits in motet: until a
// fiber of its thread unlocks it, or, if another thread holds it, by trying again and again.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/thread_state.hpp"
#include "io/exact_io.hpp"
#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_waits.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Who makes a call: a fiber, or anybody else, for whom the library does. Made where the call is
/// not outside_of_fibers().
class lock_caller {
 public:
  [[gnu::always_inline]] lock_caller() noexcept : lock_caller(*self()) {}
  [[gnu::always_inline]] explicit lock_caller(thread_state& home) noexcept
      : home_(home), apart_(&home_.running().resume_context.shadow) {}
  lock_caller(const lock_caller&) = delete;
  lock_caller& operator=(const lock_caller&) = delete;
  [[gnu::always_inline]] ~lock_caller() = default;

  /// Whether a fiber makes it: not while the thread polls, for instance.
  explicit operator bool() const noexcept {
    return !home_.schedule.in_backend && !home_.foreign && !home_.looks_aside &&
           !is_switched_off_for_locks;
  }
  bool may_wait() const noexcept { return !calls_are_plain(home_) && !must_not_switch(home_); }
  thread_state& home() const noexcept { return home_; }
  std::uint64_t fiber() const noexcept { return home_.running().id; }

 private:
  thread_state& home_;
  [[no_unique_address]] apart_from_tsan apart_;
};

constexpr bool means_locked(int error) noexcept {
  return error == 0 || error == EOWNERDEAD;
}

/// The wait of a call for a lock that is held. `Lock` is a class that has:
///   const void* address(), const char* name(), const void* site()
///   int try_lock()                     which returns EBUSY if the lock is held
///   int lock()                         the library's own call, which may block
///   std::optional<int> lock_briefly()  the same for a moment, or nothing
///   bool is_held_here()                whether a fiber of the thread is known to hold it
///   bool may_block()                   whether lock() then blocks, and does not lock it twice
template <typename Lock>
class lock_wait {
 public:
  lock_wait(const Lock& lock, const lock_caller& caller, clock::time_point due) noexcept
      : lock_(lock),
        caller_(caller),
        due_(due),
        waiter_(lock.address(), lock.name(), caller.home()) {}

  /// Returns: an error, as pthread_mutex_clocklock(3).
  int run() noexcept {
    for (;;) {
      if (const std::optional<int> error = attempt()) return *error;
      if (!caller_.may_wait()) return block();
      if (const std::optional<int> error = wait()) return *error;
    }
  }

 private:
  std::optional<int> attempt() noexcept {
    if (waiter_.is_first()) {
      const int error = lock_.try_lock();
      if (error != EBUSY) return error;
    }
    const bool is_late = due_ != no_limit && caller_.home().time.now() >= due_;
    return is_late ? std::optional(ETIMEDOUT) : std::nullopt;
  }

  int block() noexcept {
    if (!lock_.is_held_here()) return lock_.lock();
    lock_waits::of_thread().report_block(lock_.address(), lock_.name(), lock_.site(),
                                         caller_.home());
    return lock_.may_block() ? lock_.lock() : EDEADLK;
  }

  /// A report may wait, so the lock is tried again after it.
  std::optional<int> wait() noexcept {
    const bool is_new = std::exchange(is_new_, false);
    const bool is_held_here = lock_.is_held_here();
    if (is_held_here && is_new) {
      lock_waits::of_thread().report_cycle(lock_.address(), lock_.name(), lock_.site(),
                                           caller_.home());
      return std::nullopt;
    }
    if (is_held_here || !waiter_.is_first()) {
      waiter_.await(due_);
      return std::nullopt;
    }
    const std::optional<int> error = is_new ? lock_.lock_briefly() : std::nullopt;
    if (error.value_or(ETIMEDOUT) != ETIMEDOUT) return error;
    waiter_.await(std::min(due_, caller_.home().time.after(pauses_.next_pause())));
    return std::nullopt;
  }

  const Lock& lock_;
  const lock_caller& caller_;
  const clock::time_point due_;
  lock_waiter waiter_;
  vain_waits pauses_;
  bool is_new_ = true;
};

template <typename Lock>
[[gnu::noinline]] int await_lock(const Lock& lock, const lock_caller& caller,
                                 clock::time_point due) noexcept {
  return lock_wait<Lock>(lock, caller, due).run();
}

}}}  // namespace motet::MOTET_ABI::detail
