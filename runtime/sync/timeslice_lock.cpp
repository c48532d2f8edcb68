// SPDX-License-Identifier: MIT
// See timeslice_lock.hpp. The holder that gives the lock up writes the next holder: no waiter
// overtakes another, and each slice takes one wake. There is no thread that watches for stalls: the
// first in line waits with a time limit.
#include <motet/detail/platform/process.hpp>
#include <motet/sync/mutex.hpp>
#include <motet/sync/timeslice_lock.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/saturating_time.hpp"
#include "core/event_recorder.hpp"
#include "core/mail/remote_wait.hpp"
#include "core/thread_state.hpp"
#include "platform/simulated_threads.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

constexpr int quanta_of_a_stall = 10;
constexpr std::chrono::hours longest_quantum(365 * 24);

clock::duration checked(detail::timespan quantum) {
  if (quantum.length <= clock::duration::zero() || quantum.length > longest_quantum) {
    throw std::invalid_argument(
        "timeslice_lock: the quantum must be greater than 0 and at most a year");
  }
  return quantum.length;
}

// In a simulation real time decides nothing: a slice with waiters ends when the simulation says so,
// and none is a stall.

bool is_simulated() noexcept {
  return detail::simulated_threads::present() != nullptr;
}

/// Returns: whether the slice ends; nothing if that is for the clock to say.
std::optional<bool> decided_end(detail::thread_core* thread) noexcept {
  if (!is_simulated() || thread == nullptr || !thread->recorded()) return std::nullopt;
  const auto choice = static_cast<detail::thread_state*>(thread)->recording->choose_branch(2);
  return choice == 0U;
}

}  // namespace

struct timeslice_lock::wait_node {
  explicit wait_node(std::uintptr_t holder) noexcept : mark(holder) {}

  const std::uintptr_t mark;
  const clock::time_point start = clock::now();
  wait_node* next = nullptr;
  bool owns_lock = false;
  bool refused = false;
  detail::remote_wait ownership{"its turn with a timeslice_lock"};
};

timeslice_lock::timeslice_lock(detail::timespan quantum,
                               std::function<void(clock::duration)> on_stall)
    : quantum_(checked(quantum)),
      quantum_ticks_(detail::ticks_in(quantum_)),
      on_stall_(std::move(on_stall)) {}

timeslice_lock::~timeslice_lock() {
  sharing_.lock_at_end();
  forget_gone();
  wait_node* node = std::exchange(first_, nullptr);
  sharing_.unlock();
  while (node != nullptr) {
    wait_node& waiter = *node;
    node = node->next;
    waiter.refused = true;
    waiter.ownership.end();
  }
}

void timeslice_lock::acquire(std::uintptr_t mark) noexcept {
  holder_.store(mark, std::memory_order_relaxed);
  slice_began_ = detail::ticks();
  ++slices_;
}

/// A forked child forgets the waiters of its parent, without a look at their frames, which may be
/// gone.
void timeslice_lock::forget_gone() noexcept {
  if (std::exchange(filled_in_, detail::this_process()) == detail::this_process()) return;
  first_ = last_ = nullptr;
  waiter_count_.store(0, std::memory_order_relaxed);
}

void timeslice_lock::line_up(wait_node& late) noexcept {
  forget_gone();
  *(first_ == nullptr ? &first_ : &last_->next) = &late;
  last_ = &late;
  waiter_count_.store(waiter_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Makes the first waiter the holder.
/// Returns: that waiter, which the caller must notify; null if none waits, and the lock is free.
timeslice_lock::wait_node* timeslice_lock::choose_next() noexcept {
  forget_gone();
  wait_node* next = first_;
  if (next == nullptr) {
    holder_.store(0, std::memory_order_relaxed);
    return nullptr;
  }
  first_ = next->next;
  waiter_count_.store(waiter_count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  acquire(next->mark);
  next->owns_lock = true;
  ++statistics_.handovers;
  statistics_.longest_wait = std::max(statistics_.longest_wait, clock::now() - next->start);
  return next;
}

void timeslice_lock::check_held(const detail::thread_core* thread) const {
  if (!detail::is_mark_of(thread, holder_.load(std::memory_order_relaxed))) {
    throw std::logic_error("timeslice_lock: the caller does not hold the lock");
  }
}

void timeslice_lock::lock() {
  detail::thread_core* thread = detail::shared_policy::enter();
  const std::uintptr_t me = detail::holder_mark(thread);
  sharing_.lock();
  const std::uintptr_t holder = holder_.load(std::memory_order_relaxed);
  if (holder == 0) {
    acquire(me);
    sharing_.unlock();
    return;
  }
  if (detail::is_mark_of(thread, holder)) {
    sharing_.unlock();
    throw std::logic_error("timeslice_lock::lock(): the caller already holds the lock");
  }
  wait_node node(me);
  line_up(node);
  sharing_.unlock();
  await_slice(node);
}

bool timeslice_lock::try_lock() {
  const std::uintptr_t me = detail::holder_mark(detail::self_core());
  const std::lock_guard lock(sharing_);
  if (holder_.load(std::memory_order_relaxed) != 0) return false;
  acquire(me);
  return true;
}

void timeslice_lock::unlock() {
  check_held(detail::self_core());
  sharing_.lock();
  wait_node* next = choose_next();
  sharing_.unlock();
  if (next != nullptr) next->ownership.end();
}

void timeslice_lock::yield_if_over() {
  detail::thread_core* thread = detail::self_core();
  check_held(thread);
  if (!decided_end(thread).value_or(detail::ticks() - slice_began_ >= quantum_ticks_)) return;
  sharing_.lock();
  forget_gone();
  if (first_ == nullptr) {
    sharing_.unlock();
    return;
  }
  wait_node node(holder_.load(std::memory_order_relaxed));
  line_up(node);
  wait_node* next = choose_next();
  ++statistics_.forced;
  sharing_.unlock();
  next->ownership.end();
  node.ownership.await_end();
  if (node.refused) throw std::logic_error("timeslice_lock: destroyed while a fiber waited for it");
  if (thread != nullptr) thread->deliver();
}

/// If the lock is destroyed meanwhile, this returns without holding it, and the caller's unlock()
/// throws.
void timeslice_lock::lock_again() noexcept {
  const std::uintptr_t me = detail::holder_mark(detail::self_core());
  sharing_.lock();
  if (holder_.load(std::memory_order_relaxed) == 0) {
    acquire(me);
    sharing_.unlock();
    return;
  }
  wait_node node(me);
  line_up(node);
  sharing_.unlock();
  node.ownership.await_end();
}

/// An interruption, or an exception of on_stall, gives up the place in line, and the lock if that
/// has just come.
void timeslice_lock::await_slice(wait_node& node) {
  using detail::remote_wait;
  try {
    for (;;) {
      const remote_wait::result result = node.ownership.await_until(stalls_at(node));
      if (result == remote_wait::result::over) break;
      if (result == remote_wait::result::interrupted) detail::throw_interruption();
      look_for_stall(node);
    }
  } catch (...) {
    leave_line(node);
    throw;
  }
  if (node.refused) throw std::logic_error("timeslice_lock: destroyed while a fiber waited for it");
}

void timeslice_lock::leave_line(wait_node& node) noexcept {
  sharing_.lock();
  wait_node** link = &first_;
  wait_node* predecessor = nullptr;
  while (*link != nullptr && *link != &node) {
    predecessor = *link;
    link = &predecessor->next;
  }
  const bool in_line = *link == &node;
  if (in_line) {
    *link = node.next;
    if (last_ == &node) last_ = predecessor;
    waiter_count_.store(waiter_count_.load(std::memory_order_relaxed) - 1,
                        std::memory_order_relaxed);
  }
  sharing_.unlock();
  if (in_line) return;
  node.ownership.await_end();
  if (node.owns_lock) unlock();
}

/// Returns: when the first in line should look for a stall; never without on_stall.
clock::time_point timeslice_lock::stalls_at(const wait_node& node) const noexcept {
  if (on_stall_ == nullptr || is_simulated()) return clock::time_point::max();
  const clock::duration longest = quantum_ * quanta_of_a_stall;
  const std::lock_guard lock(sharing_);
  const bool asks = first_ == &node && stalled_slice_ != slices_;
  if (!asks) return detail::deadline_after(clock::now(), longest);
  const std::uint64_t quanta = (detail::ticks() - slice_began_) / quantum_ticks_;
  const auto remaining =
      quanta < quanta_of_a_stall ? quanta_of_a_stall - static_cast<int>(quanta) : 0;
  return detail::deadline_after(clock::now(), quantum_ * remaining);
}

void timeslice_lock::look_for_stall(const wait_node& node) {
  std::uint64_t quanta = 0;
  {
    const std::lock_guard lock(sharing_);
    if (first_ != &node || stalled_slice_ == slices_) return;
    quanta = (detail::ticks() - slice_began_) / quantum_ticks_;
    if (quanta < quanta_of_a_stall) return;
    stalled_slice_ = slices_;
  }
  on_stall_(quantum_ * static_cast<clock::rep>(quanta));
}

timeslice_lock::statistics timeslice_lock::stats() const {
  const std::lock_guard lock(sharing_);
  return statistics_;
}

}}  // namespace motet::MOTET_ABI
