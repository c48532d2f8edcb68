// SPDX-License-Identifier: MIT
// Mutual exclusion, strictly in order of arrival.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI {

/// A lock's figures, for monitoring.
struct lock_stats {
  bool held = false;        // by one fiber or thread alone
  std::size_t readers = 0;  // of a shared_mutex
  std::size_t waiting = 0;  // fibers and threads
};

namespace detail {

/// Marks a fiber by its number, which no other fiber ever has: a lock that a fiber holds when it
/// ends stays held.
inline std::uintptr_t mark_of(const control_block& fiber) noexcept {
  static_assert(sizeof(std::uintptr_t) == sizeof(fiber.id));
  return fiber.id << 1;
}

/// A main fiber has its thread's mark, so it holds the locks taken before the thread had fibers.
inline std::uintptr_t mark_at(const thread_core& home, const control_block& fiber) noexcept {
  return fiber.is_main ? home.mark() | 1 : mark_of(fiber);
}

/// Returns: the mark of the running fiber, or of a thread without fibers, as the holder of a lock;
///          never 0.
inline std::uintptr_t holder_mark(const thread_core* thread) noexcept {
  if (thread == nullptr) return this_thread_mark() | 1;
  control_block& block = thread->running();
  if (!block.hosts) [[likely]]
    return mark_at(*thread, block);
  const control_block& traveller = traveller_of(block);
  return mark_at(*traveller.home, traveller);
}

/// Returns: whether `holder` marks the fiber that runs on this thread, or the thread itself. A
///          fiber that forks is a main fiber in the child, but its locks still bear its number.
inline bool is_mark_of(const thread_core* thread, std::uintptr_t holder) noexcept {
  if (holder == holder_mark(thread)) [[likely]]
    return true;
  return thread != nullptr && holder == mark_of(traveller_of(thread->running()));
}

[[noreturn]] void refuse_to_unlock();
[[noreturn]] void refuse_to_lock_again();

template <typename Sharing>
class basic_mutex {
 public:
  basic_mutex() = default;
  basic_mutex(const basic_mutex&) = delete;
  basic_mutex& operator=(const basic_mutex&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_mutex() { waiters_.detach_all(sharing_); }

  /// Waits until the mutex is free, and takes it: in the order in which fibers and threads asked.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the caller holds it already, or if the
  ///         mutex is destroyed meanwhile.
  [[gnu::always_inline]] void lock() { lock_for("lock of a mutex"); }

  /// Locks the mutex if it is free.
  /// Not a switchpoint.
  bool try_lock() {
    thread_core* thread = self_core();
    const std::uintptr_t me = holder_mark(thread);
    const std::lock_guard lock(sharing_);
    if (holder_.load(std::memory_order_relaxed) == 0) {
      holder_.store(me, std::memory_order_relaxed);
      return true;
    }
    if (thread != nullptr) thread->backs_off(true);
    return false;
  }

  /// Hands the mutex to the fiber or thread that has waited longest; it is free if none waits.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if the caller does not hold the mutex.
  [[gnu::always_inline]] void unlock() {
    thread_core* thread = self_core();
    if (!held_by(thread)) [[unlikely]]
      refuse_to_unlock();
    sharing_.lock();
    wait_node* next = waiters_.choose(thread);
    if (next == nullptr) {
      holder_.store(0, std::memory_order_relaxed);
      sharing_.unlock();
      return;
    }
    // std::lock() gives up the locks it has when it cannot get all. If these were handed on,
    // several such callers could hand one another their locks for ever: so the mutex is left free,
    // and the first in line looks again.
    if (thread != nullptr && thread->backs_off()) waiters_.expect(*next);
    holder_.store(next->refused ? 0 : next->number, std::memory_order_relaxed);
    sharing_.unlock();
    next->owner->notify(thread);
  }

  /// Returns: the mutex's state; takes time linear in the number of waiters. Not a switchpoint.
  lock_stats stats() {
    const std::lock_guard lock(sharing_);
    return {holder_.load(std::memory_order_relaxed) != 0, 0, waiters_.size()};
  }

 private:
  template <typename>
  friend class basic_recursive_mutex;
  template <typename>
  friend class basic_once;

  /// `description` names the wait in dumps.
  [[gnu::always_inline]] void lock_for(const char* description) {
    thread_core* thread = Sharing::enter();
    const std::uintptr_t me = holder_mark(thread);
    if (thread != nullptr) thread->backs_off(false);
    sharing_.lock();
    do {
      const std::uintptr_t holder = holder_.load(std::memory_order_relaxed);
      if (holder == 0) [[likely]] {
        holder_.store(me, std::memory_order_relaxed);
        sharing_.unlock();
        return;
      }
      if (is_mark_of(thread, holder)) [[unlikely]] {
        sharing_.unlock();
        refuse_to_lock_again();
      }
    } while (sharing_.becomes_fiber(thread));
    single_wait node(description, this, holder_, thread, Sharing::shared);
    node.number = me;
    waiters_.push_back(node);
    sharing_.unlock();
    wait_on(sharing_, node);
    if (node.refused) [[unlikely]]
      lock_again(description, thread, me);
  }

  bool held_by(const thread_core* thread) const noexcept {
    return is_mark_of(thread, holder_.load(std::memory_order_relaxed));
  }

  /// The first in line takes the mutex if it is still free, or waits in front of all others.
  [[gnu::noinline]] void lock_again(const char* description, thread_core* thread,
                                    std::uintptr_t me) {
    for (;;) {
      sharing_.lock();
      waiters_.arrived();
      if (holder_.load(std::memory_order_relaxed) == 0) {
        holder_.store(me, std::memory_order_relaxed);
        sharing_.unlock();
        return;
      }
      single_wait node(description, this, holder_, thread, Sharing::shared);
      node.number = me;
      waiters_.push_front(node);
      sharing_.unlock();
      wait_on(sharing_, node);
      if (!node.refused) return;
    }
  }

  Sharing sharing_;
  detail::atomic<std::uintptr_t> holder_{0};  // written under the lock
  wait_list waiters_;
};

}  // namespace detail

/// A lock that fibers and threads can hold, one at a time. Its holder may call switchpoints.
using mutex = detail::basic_mutex<detail::shared_policy>;

namespace local {
/// The same for the fibers of one thread.
using mutex = detail::basic_mutex<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
