// SPDX-License-Identifier: MIT
// Turns of about the same length for all who want to enter what only one may be in: an interpreter
// or an engine that knows no threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <motet/clock.hpp>
#include <motet/detail/waiting/sharing.hpp>
#include <motet/detail/words/timespan.hpp>

namespace motet { inline namespace MOTET_ABI {

/// A lock that is handed on strictly in order of arrival, and whose holder looks every now and then
/// whether its turn is over. Fibers and threads may use it. What it guards is whole wherever the
/// holder looks, and wherever it unlocks. It suits std::lock_guard and std::unique_lock. Round
/// short sections a mutex is quicker.
class timeslice_lock {
 public:
  struct statistics {
    std::uint64_t handovers = 0;      // to one who waited
    std::uint64_t forced = 0;         // of these, when a turn was over
    clock::duration longest_wait{0};  // of one who got it
  };

  /// A holder who is waited for has at least `quantum` before yield_if_due() hands the lock on.
  /// `on_stall`, if given, is called by the first in line when the holder has had it for ten times
  /// as long, once a turn, with how long; what it throws is thrown by the caller's lock().
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a quantum that is not positive, or longer than a year.
  explicit timeslice_lock(detail::timespan quantum = std::chrono::milliseconds(5),
                          std::function<void(clock::duration)> on_stall = {});
  timeslice_lock(const timeslice_lock&) = delete;
  timeslice_lock& operator=(const timeslice_lock&) = delete;
  /// Not a switchpoint. Whoever still waits for it gets a std::logic_error.
  ~timeslice_lock();

  /// Waits for its turn.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; std::logic_error if it holds it already, or if the
  ///         lock is destroyed meanwhile; what on_stall throws.
  void lock();
  /// Takes it if nobody holds it.
  /// Not a switchpoint.
  bool try_lock();
  /// Hands it to whoever has waited longest, or to nobody.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if another one holds it, or nobody.
  void unlock();

  /// Hands it on if somebody waits and the holder has had it for a quantum, and waits for the next
  /// turn, behind all others; nothing interrupts that. When nobody waits it takes a nanosecond.
  /// Switchpoint if it hands it on; else not a switchpoint.
  /// Throws: what is pending for this fiber, which holds the lock then, too; std::logic_error if
  ///         another one holds it, or nobody.
  void yield_if_due() {
    if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      yield_if_over();
  }

  /// Round what blocks: gives the lock up, and takes it again at its end, in its turn, also while
  /// an exception is on its way out.
  class unlocked_region {
   public:
    /// Not a switchpoint.
    /// Throws: as unlock().
    explicit unlocked_region(timeslice_lock& held) : lock_(held) { held.unlock(); }
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
  struct waiter;

  void yield_if_over();
  void lock_again() noexcept;
  void check_held(const detail::thread_core* thread) const;
  // With the lock of `sharing_`.
  void take(std::uintptr_t mark) noexcept;
  void line_up(waiter& late) noexcept;
  void forget_gone() noexcept;
  waiter* choose_next() noexcept;
  // Without.
  void await_turn(waiter& mine);
  void look_for_stall(const waiter& mine);
  void leave_line(waiter& mine) noexcept;
  clock::time_point stalls_at(const waiter& mine) const noexcept;

  const clock::duration quantum_;
  const std::uint64_t quantum_ticks_;
  const std::function<void(clock::duration)> on_stall_;
  std::atomic<unsigned> waiting_{0};
  std::atomic<std::uintptr_t> holder_{0};
  mutable detail::any_thread sharing_;  // guards what is written of the above, and:
  std::uint64_t turn_began_ = 0;        // in ticks
  std::uint64_t turns_ = 0;
  std::uint64_t stalled_turn_ = 0;  // on_stall has been called in
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
  std::uint32_t filled_in_ = 0;  // this process
  statistics counted_;
};

}}  // namespace motet::MOTET_ABI
