// SPDX-License-Identifier: MIT
// The mutexes, condition variables and barriers of Boost.Fiber: between fibers and threads, in
// order of arrival.
#pragma once

#include <chrono>
#include <cstddef>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/detail/base/left_until.hpp>
#include <motet/sync/barrier.hpp>
#include <motet/sync/condition_variable.hpp>
#include <motet/sync/mutex.hpp>
#include <motet/sync/recursive_mutex.hpp>
#include <stdexcept>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

/// One of motet's mutexes, Mutex, with the time limits and exceptions of Boost.Fiber.
template <typename Mutex>
class basic_timed_mutex {
 public:
  /// Switchpoint.
  /// Throws: lock_error if the caller holds a mutex that is not recursive.
  void lock() {
    tell(std::errc::resource_deadlock_would_occur, [this] { mutex_.lock(); });
  }
  /// Returns: false, too, if the caller holds a mutex that is not recursive.
  /// Not a switchpoint.
  bool try_lock() { return mutex_.try_lock(); }
  /// Not a switchpoint.
  /// Throws: lock_error if the caller does not hold the mutex.
  void unlock() {
    tell(std::errc::operation_not_permitted, [this] { mutex_.unlock(); });
  }

  /// Returns: whether it was locked in time.
  /// Switchpoint.
  /// Throws: as lock().
  template <typename Rep, typename Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& limit) {
    motet::detail::here_core().deliver();
    return try_lock() || motet::move_on_after(limit, [this] { lock(); });
  }
  template <typename Clock, typename Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& end) {
    return try_lock_for(detail::remaining_until(end));
  }

 private:
  template <typename F>
  static void tell(std::errc error, F&& call) {
    try {
      call();
    } catch (const motet::deadlock&) {
      throw;
    } catch (const std::logic_error& misuse) {
      throw lock_error(make_error_code(error), misuse.what());
    }
  }

  Mutex mutex_;
};

class mutex : public basic_timed_mutex<motet::mutex> {};
class timed_mutex : public basic_timed_mutex<motet::mutex> {};
class recursive_mutex : public basic_timed_mutex<motet::recursive_mutex> {};
class recursive_timed_mutex : public basic_timed_mutex<motet::recursive_mutex> {};

enum class cv_status { no_timeout = 1, timeout };

/// For locks of any type. There are no spurious wakes.
class condition_variable_any {
 public:
  /// Not a switchpoint.
  void notify_one() { condition_.notify_one(); }
  /// Not a switchpoint.
  void notify_all() { condition_.notify_all(); }

  /// Switchpoint.
  /// Throws: as motet::condition_variable::wait().
  template <typename Lock>
  void wait(Lock& lock) {
    condition_.wait(lock);
  }
  template <typename Lock, typename Predicate>
  void wait(Lock& lock, Predicate ready) {
    condition_.wait(lock, ready);
  }

  /// Switchpoint.
  /// Throws: as wait().
  template <typename Lock, typename Rep, typename Period>
  cv_status wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& limit) {
    const bool notified = motet::move_on_after(limit, [&] { condition_.wait(lock); });
    return notified ? cv_status::no_timeout : cv_status::timeout;
  }
  template <typename Lock, typename Clock, typename Duration>
  cv_status wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& end) {
    return wait_for(lock, detail::remaining_until(end));
  }

  /// Returns: what `ready` returned last.
  /// Switchpoint.
  /// Throws: as wait(); what `ready` throws.
  template <typename Lock, typename Rep, typename Period, typename Predicate>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& limit, Predicate ready) {
    return wait_until(lock, std::chrono::steady_clock::now() + limit, ready);
  }
  template <typename Lock, typename Clock, typename Duration, typename Predicate>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& end,
                  Predicate ready) {
    while (!ready()) {
      if (wait_until(lock, end) == cv_status::timeout) return ready();
    }
    return true;
  }

 private:
  motet::condition_variable condition_;
};

using condition_variable = condition_variable_any;

/// Blocks fibers and threads until a given number of them has arrived; reusable.
class barrier {
 public:
  /// Not a switchpoint.
  /// Throws: fiber_error for 0.
  explicit barrier(std::size_t parties) : barrier_(checked(parties)) {}

  /// Returns: true in the party that arrives last.
  /// Switchpoint.
  bool wait() { return barrier_.arrive_and_wait(); }

 private:
  static std::ptrdiff_t checked(std::size_t parties) {
    if (parties == 0) {
      throw fiber_error(make_error_code(std::errc::invalid_argument), "a barrier without parties");
    }
    return static_cast<std::ptrdiff_t>(parties);
  }

  motet::barrier barrier_;
};

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
