// SPDX-License-Identifier: MIT
// A barrier holds its parties until all have arrived, round after round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_parties();
[[noreturn]] void refuse_arrival();

template <typename Sharing>
class basic_barrier {
 public:
  /// A round ends when `parties` have arrived.
  /// Throws: std::invalid_argument for less than 1.
  explicit basic_barrier(std::ptrdiff_t parties) : parties_(parties), absentees_(parties) {
    if (parties < 1) refuse_parties();
  }
  basic_barrier(const basic_barrier&) = delete;
  basic_barrier& operator=(const basic_barrier&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_barrier() { waiters_.detach_all(sharing_); }

  /// Arrives, and waits until as many have arrived as there are parties. The last of them ends the
  /// round, without waiting. An interrupted wait takes its arrival back.
  /// Returns: whether this was the last arrival; so one call in each round returns true.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption; std::logic_error if no party is left, or if the
  ///         barrier is destroyed meanwhile.
  bool arrive_and_wait() {
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      forget_gone();
      if (absentees_ <= 1) {
        end_round(thread);
        return true;
      }
    } while (sharing_.becomes_fiber(thread));
    --absentees_;
    const std::uint64_t round = round_;
    single_wait node("wait at a barrier", this, thread, Sharing::shared);
    waiters_.push_back(node);
    sharing_.unlock();
    if (!node.lone_waiter.park() && (revert_arrival(node, round) || node.list_gone)) {
      throw_interruption();
    }
    if (node.lone_waiter.destroyed) throw_destroyed();
    return false;
  }

  /// Arrives without waiting, and leaves the barrier: later rounds need one party fewer. So the
  /// others need not wait for a party that ends early, for example because it failed.
  /// Not a switchpoint.
  /// Throws: std::logic_error if no party is left.
  void arrive_and_drop() {
    thread_core* thread = self_core();
    sharing_.lock();
    forget_gone();
    const bool ends = absentees_ <= 1;
    if (parties_ > 0) --parties_;
    if (ends) {
      end_round(thread);
    } else {
      --absentees_;
      sharing_.unlock();
    }
  }

 private:
  /// A forked child has none of the fibers that waited here, so a new round begins.
  void forget_gone() noexcept {
    if (process_ == this_process()) [[likely]]
      return;
    absentees_ = parties_;
    ++round_;
    process_ = this_process();
  }

  /// Called under the lock by the last arrival, which releases the lock.
  void end_round(thread_core* thread) {
    const bool possible = absentees_ > 0;
    wake_list waiters;
    absentees_ = parties_;
    ++round_;
    while (wait_node* next = waiters_.choose(thread)) waiters.add(*next);
    sharing_.unlock();
    if (!possible) refuse_arrival();
    waiters.notify(thread);
  }

  /// Returns: false if the round has already ended: the arrival was then needed, and counts.
  bool revert_arrival(wait_node& node, std::uint64_t round) noexcept {
    bool reverted = false;
    leave(sharing_, node, [&] {
      reverted = round == round_;
      if (reverted) ++absentees_;
    });
    return reverted;
  }

  Sharing sharing_;
  std::ptrdiff_t parties_;
  std::ptrdiff_t absentees_;  // parties still to arrive in this round; 0 only if no party is left
  std::uint64_t round_ = 0;
  std::uint32_t process_ = this_process();
  wait_list waiters_;
};

}  // namespace detail

/// Between fibers and threads.
using barrier = detail::basic_barrier<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using barrier = detail::basic_barrier<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
