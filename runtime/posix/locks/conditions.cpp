// SPDX-License-Identifier: MIT
// pthread_cond_wait(3) and its relatives. A wait may end without a signal, so one that a fiber and
// a thread could both be meant by goes to both.
#include "posix/locks/conditions.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/detail/core/internal_shield.hpp>

#include "core/mail/remote_wait.hpp"
#include "posix/caller.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"
#include "posix/locks/mutexes.hpp"
#include "posix/wait.hpp"

#if defined(MOTET_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct condition_waiters_tag;

/// In the frame of a call.
struct condition_waiter : tagged_link<condition_waiters_tag> {
  explicit condition_waiter(const pthread_cond_t* awaited) noexcept
      : condition(awaited),
        wait("pthread_cond_wait on",
             static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(awaited))) {}
  const pthread_cond_t* condition;
  remote_wait wait;
};

/// The fibers of all threads that wait for some conditions, found by the address.
struct condition_row {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  list<condition_waiter, condition_waiters_tag> waiters;
};

/// ThreadSanitizer does not see calls of the C library's own functions.
class row_guard {
 public:
  explicit row_guard(condition_row& row) noexcept : row_(row) {
    real.pthread_mutex_lock(&row_.mutex);
#if defined(MOTET_TSAN)
    __tsan_acquire(&row_);
#endif
  }
  row_guard(const row_guard&) = delete;
  row_guard& operator=(const row_guard&) = delete;
  ~row_guard() {
#if defined(MOTET_TSAN)
    __tsan_release(&row_);
#endif
    real.pthread_mutex_unlock(&row_.mutex);
  }

 private:
  condition_row& row_;
};

/// Fibers that wait for any condition: while there are none, a signal costs a load more. One that
/// changes what a fiber waits for holds the mutex, or held it, after the fiber has been counted.
std::atomic<std::size_t> waiter_count{0};

std::array<condition_row, 64> rows;

condition_row& row_of(const pthread_cond_t* condition) noexcept {
  return rows[reinterpret_cast<std::uintptr_t>(condition) / sizeof *condition % rows.size()];
}

/// Around a fork no other thread is in a row; in the child none of the waiters is there.
void lock_rows() noexcept {
  for (condition_row& row : rows) real.pthread_mutex_lock(&row.mutex);
}

void unlock_rows() noexcept {
  for (condition_row& row : rows) real.pthread_mutex_unlock(&row.mutex);
}

void forget_waiters() noexcept {
  waiter_count.store(0);
  for (condition_row& row : rows) row.waiters.abandon();
  unlock_rows();
}

const int registered_for_fork = ::pthread_atfork(&lock_rows, &unlock_rows, &forget_waiters);

/// Returns: a fiber that waits for the condition, and is not in the row any more; null if none is.
condition_waiter* take_waiter(const pthread_cond_t* condition) noexcept {
  condition_row& row = row_of(condition);
  const row_guard guard(row);
  auto* waiter = row.waiters.front();
  while (waiter != nullptr && waiter->condition != condition) waiter = row.waiters.next(*waiter);
  if (waiter != nullptr) waiter->unlink();
  return waiter;
}

void wake_one(const pthread_cond_t* condition) noexcept {
  if (waiter_count.load(std::memory_order_relaxed) == 0) return;
  if (condition_waiter* const waiter = take_waiter(condition)) waiter->wait.end();
}

void wake_all(const pthread_cond_t* condition) noexcept {
  if (waiter_count.load(std::memory_order_relaxed) == 0) return;
  while (condition_waiter* const waiter = take_waiter(condition)) waiter->wait.end();
}

/// Returns: whether the waiter was still in its row, and nobody is about to end its wait.
bool give_up(condition_waiter& waiter) noexcept {
  condition_row& row = row_of(waiter.condition);
  const row_guard guard(row);
  const bool was_in_row = waiter.linked();
  waiter.unlink();
  return was_in_row;
}

void enter(condition_waiter& waiter) noexcept {
  waiter_count.fetch_add(1);
  condition_row& row = row_of(waiter.condition);
  const row_guard guard(row);
  row.waiters.push_back(waiter);
}

/// Source: glibc, nptl/pthreadP.h: the lowest bit of __wrefs says whether processes share it. Their
/// signals are not seen here.
bool is_shared(const pthread_cond_t& condition) noexcept {
  return (condition.__data.__wrefs & 1) != 0;
}

/// Waits for a signal, until `due` at the latest; for one of another process, a moment.
/// Returns: 0; ETIMEDOUT if `due` has passed.
int await_signal(thread_state& home, condition_waiter& waiter, clock::time_point due,
                 bool is_shared) noexcept {
  constexpr auto longest_pause = std::chrono::milliseconds(50);
  const internal_shield shield;
  const clock::time_point limit = is_shared ? std::min(due, home.time.after(longest_pause)) : due;
  const auto result = waiter.wait.await_until(limit);
  const bool was_late = result != remote_wait::result::over && give_up(waiter);
  if (!was_late) waiter.wait.await_end();
  waiter_count.fetch_sub(1);
  return was_late && due != no_limit && home.time.now() >= due ? ETIMEDOUT : 0;
}

int wait_in_fiber(const lock_caller& caller, pthread_cond_t* condition, pthread_mutex_t* mutex,
                  clock::time_point due, const void* site) noexcept {
  condition_waiter waiter(condition);
  const bool shared = is_shared(*condition);
  enter(waiter);
  if (const int error = unlock_mutex(mutex); error != 0) {
    if (!give_up(waiter)) waiter.wait.await_end();
    waiter_count.fetch_sub(1);
    return error;
  }
  const int result = await_signal(caller.home(), waiter, due, shared);
  const int error = lock_mutex(mutex, site);
  return error != 0 ? error : result;
}

/// Source: glibc, nptl/pthreadP.h: the second bit of __wrefs is the clock, of
/// pthread_condattr_setclock(3).
clockid_t clock_of(const pthread_cond_t& condition) noexcept {
  return (condition.__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/// Waits until `limit` on a clock. `block()` is the library's call.
template <typename Block>
int wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t id,
               const timespec* limit, const void* site, Block block) {
  if (outside_of_fibers() || !is_usual_limit(id, limit)) return block();
  const lock_caller caller;
  if (!caller || !caller.may_wait()) return block();
  return wait_in_fiber(caller, condition, mutex, due_at(caller.home(), id, *limit), site);
}

}  // namespace

int wait_for_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, const void* site) {
  const auto block = [&] { return real.pthread_cond_wait(condition, mutex); };
  if (outside_of_fibers()) return block();
  const lock_caller caller;
  if (!caller || !caller.may_wait()) return block();
  return wait_in_fiber(caller, condition, mutex, no_limit, site);
}

int wait_for_condition_until(pthread_cond_t* condition, pthread_mutex_t* mutex,
                             const timespec* limit, const void* site) {
  return wait_until(condition, mutex, clock_of(*condition), limit, site,
                    [&] { return real.pthread_cond_timedwait(condition, mutex, limit); });
}

}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return wait_for_condition(condition, mutex, __builtin_return_address(0));
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* limit) {
  return wait_for_condition_until(condition, mutex, limit, __builtin_return_address(0));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t id,
                           const timespec* limit) {
  return wait_until(condition, mutex, id, limit, __builtin_return_address(0),
                    [&] { return real.pthread_cond_clockwait(condition, mutex, id, limit); });
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  wake_one(condition);
  return real.pthread_cond_signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  wake_all(condition);
  return real.pthread_cond_broadcast(condition);
}

}  // extern "C"
