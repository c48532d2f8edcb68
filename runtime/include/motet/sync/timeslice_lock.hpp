// SPDX-License-Identifier: MIT
// Turns of about the same length for fibers and threads that share something which only one of them
// may enter at a time: an interpreter, or an engine that is not thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/sync/sharing.hpp>

namespace motet { inline namespace MOTET_ABI {

/// A lock that is handed on strictly in order of arrival, and whose holder calls yield_if_due()
/// every now and then. Fibers and threads may use it. The guarded state must be consistent wherever
/// the holder calls yield_if_due() or unlock(). Works with std::lock_guard and std::unique_lock.
/// For short sections a mutex is quicker.
class timeslice_lock {
 public:
  struct statistics {
    std::uint64_t handovers = 0;      // how often a waiter got the lock
    std::uint64_t forced = 0;         // handovers by yield_if_due()
    clock::duration longest_wait{0};  // of the waiters that acquired the lock
  };

  /// A holder has the lock for at least `quantum` before yield_if_due() hands it on to a waiter.
  /// `on_stall`, if given, is called once a turn when the holder has had the lock for ten quanta,
  /// and is passed the time held so far. The first in line calls it, in lock(), which throws what
  /// `on_stall` throws.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a quantum that is not positive, or longer than a year.
  explicit timeslice_lock(detail::timespan quantum = std::chrono::milliseconds(5),
                          std::function<void(clock::duration)> on_stall = {});
  timeslice_lock(const timeslice_lock&) = delete;
  timeslice_lock& operator=(const timeslice_lock&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~timeslice_lock();

  /// Waits for the caller's turn.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the caller holds the lock already,
  ///         or if the lock is destroyed meanwhile; what on_stall throws.
  void lock();
  /// Locks if the lock is free.
  /// Not a switchpoint.
  bool try_lock();
  /// Hands the lock to the fiber or thread that has waited longest; it is free if none waits.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if the caller does not hold the lock.
  void unlock();

  /// If the holder has had the lock for a quantum, and a fiber or thread waits for it, hands the
  /// lock over and waits for the caller's next turn, behind all others; nothing interrupts that
  /// wait. Without waiters, the call takes a nanosecond.
  /// Switchpoint if it hands the lock over; else not a switchpoint.
  /// Throws: a pending interruption, while the caller still holds the lock; std::logic_error if the
  ///         caller does not hold the lock.
  void yield_if_due() {
    if (waiter_count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      yield_if_over();
  }

  /// A region for calls that block: the constructor releases the lock, and the destructor waits for
  /// a turn and acquires it again, even while an exception unwinds the stack.
  class unlocked_region {
   public:
    /// Not a switchpoint.
    /// Throws: as unlock().
    explicit unlocked_region(timeslice_lock& lock) : lock_(lock) { lock.unlock(); }
    unlocked_region(const unlocked_region&) = delete;
    unlocked_region& operator=(const unlocked_region&) = delete;
    /// Switchpoint; nothing interrupts it.
    ~unlocked_region() { lock_.lock_again(); }

   private:
    timeslice_lock& lock_;
  };

  /// Not a switchpoint. Any thread.
  statistics stats() const;

 private:
  struct wait_node;

  void yield_if_over();
  void lock_again() noexcept;
  void check_held(const detail::thread_core* thread) const;
  // Called with `sharing_` locked:
  void acquire(std::uintptr_t mark) noexcept;
  void line_up(wait_node& late) noexcept;
  void forget_gone() noexcept;
  wait_node* choose_next() noexcept;
  // Called with `sharing_` unlocked:
  void await_slice(wait_node& node);
  void look_for_stall(const wait_node& node);
  void leave_line(wait_node& node) noexcept;
  clock::time_point stalls_at(const wait_node& node) const noexcept;

  const clock::duration quantum_;
  const std::uint64_t quantum_ticks_;
  const std::function<void(clock::duration)> on_stall_;
  detail::atomic<unsigned> waiter_count_{0};
  detail::atomic<std::uintptr_t> holder_{0};
  mutable detail::shared_policy sharing_;  // guards writes to waiter_count_ and holder_, and:
  std::uint64_t slice_began_ = 0;          // in ticks
  std::uint64_t slices_ = 0;
  std::uint64_t stalled_slice_ = 0;  // the slice in which on_stall was called last
  wait_node* first_ = nullptr;
  wait_node* last_ = nullptr;
  std::uint32_t filled_in_ = 0;  // the process in which the line was filled
  statistics statistics_;
};

}}  // namespace motet::MOTET_ABI
