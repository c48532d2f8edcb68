// SPDX-License-Identifier: MIT
// The switchpoint: a fiber that must wait removes the next runnable fiber from the queue and
// transfers control to it. No scheduler is involved; if no fiber is runnable, the waiting fiber
// runs the backend itself, on its own stack. Inlined into the program's own functions, because the
// processor mispredicts the return of a function that was called on another fiber.
#pragma once

#include <array>
#include <cstddef>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/run_queue.hpp>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/detail/platform/exception_state.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The part of a thread that every switch touches; the rest is in thread_state.
struct thread_core {
  /// A stack that is no longer used, and the sanitizer's record of it.
  struct retired_stack {
    stack region;
    [[no_unique_address]] sanitizer::context_state shadow;
  };

  control_block& running() const noexcept { return *runner_; }
  bool is_home_of(const control_block& fiber) const noexcept { return fiber.mail == mail_; }
  /// Returns: this_thread_mark() of its thread. Any thread.
  std::uintptr_t mark() const noexcept { return mark_; }
  mailbox& mail() const noexcept { return *mail_; }
  /// The exceptions, and the errno, of the running fiber.
  exception_state& exceptions() const noexcept { return *live_exceptions_; }
  int& error_number() const noexcept { return *live_errno_; }
  /// Returns: the time of the last poll that asked for it.
  clock::time_point reading() const noexcept { return reading_; }
  bool any_runnable() const noexcept { return !queue_.empty(); }
  std::size_t runnable() const noexcept { return queue_.size(); }
  /// Makes room for `count` runnable fibers.
  /// Throws: std::bad_alloc.
  void reserve_runnable(std::size_t count) { queue_.reserve(count); }
  std::size_t living() const noexcept { return living_count_; }  // spun fibers that are not dead
  const control_block* first_runnable() const noexcept { return queue_.front(); }
  /// Returns: the number of switches until the inbox is polled.
  int until_look() const noexcept { return until_look_ + held_back_; }
  /// Whether each switch, and each fiber that becomes runnable, is told to its thread's recorder.
  bool recorded() const noexcept { return recorded_; }
  void recorded(bool enable) noexcept {
    const int remaining = until_look();
    recorded_ = enable;
    wakes_are_told_ = enable || alarm_ >= 0;
    held_back_ = 0;
    count_down_from(remaining);
  }
  /// From now on `alarm`, a timerfd, goes off when a fiber becomes runnable: a foreign loop waits
  /// in this thread's place. -1: not any more.
  void wakes_go_to(int alarm) noexcept {
    alarm_ = alarm;
    wakes_are_told_ = recorded_ || alarm >= 0;
  }
  /// Called when what a foreign loop waits for has been looked at without the loop.
  void have_loop_look() noexcept {
    if (alarm_ >= 0) [[unlikely]]
      sound_alarm();
  }
  /// From now on the running fiber may not switch, because of a guard at `site`; null: it may.
  /// Returns: the previous `site`.
  const call_site* forbid_switches(const call_site* site) noexcept;
  bool may_switch() const noexcept { return no_switch_ == nullptr; }
  /// Aborts the process if a no_switch_guard forbids the switch.
  void check_may_switch() const noexcept;
  list<control_block, fibers_tag>& fibers() noexcept { return fibers_; }

  /// The addresses at which another thread observes this one's progress.
  struct progress_view {
    control_block* const* runner;
    const int* until_look;
    const int* held_back;
    mailbox* const* mail;
  };
  progress_view progress() const noexcept { return {&runner_, &until_look_, &held_back_, &mail_}; }

  /// Something is pending that may wake a fiber (a transient one's counts only for polling).
  void add_pending(const control_block& fiber) noexcept { ++wakers_[fiber.transient ? 1 : 0]; }
  void remove_pending(const control_block& fiber) noexcept { --wakers_[fiber.transient ? 1 : 0]; }
  bool anything_pending() const noexcept { return wakers_[0] + wakers_[1] > 0; }
  bool lasting_pending() const noexcept { return wakers_[0] > 0; }

  /// Switches to other fibers until `wait`, a record in the running fiber's frame, has been
  /// claimed. Returns immediately if an interruption is pending.
  wake_reason park(wait_record& wait) noexcept;
  /// Goes to the back of the queue and hands the thread on.
  void snooze() noexcept;
  void make_runnable(control_block& fiber) noexcept;
  /// If many fibers are runnable, moves the one that the running fiber awaits to the front.
  void prefer_awaited() noexcept;
  /// If many fibers are runnable, moves the last one to the front.
  void return_turn() noexcept;
  /// Returns: how often a fiber has moved to the front so far.
  std::uint64_t overtakings() const noexcept { return queue_.overtakings(); }
  /// Claims the wait that a fiber is in, and makes it runnable.
  /// Returns: false if the wait was over.
  bool resume(wait_record& wait, wake_reason reason) noexcept;

  /// Returns: whether a switchpoint of the running fiber must throw now.
  bool must_throw() noexcept { return runner_->interrupts != 0 && must_throw_slowly(); }
  /// The entry of every switchpoint: throws a pending interruption. Every 256th call looks around,
  /// so that a loop of calls that never wait is interrupted, too.
  void deliver() {
    if (--calls_until_look_ == 0) [[unlikely]]
      look_between_calls();
    deliver_before_switch();
  }
  /// The same for a call that always switches: the switch polls for interruptions.
  void deliver_before_switch() {
    if (must_throw()) [[unlikely]]
      throw_pending();
  }
  [[noreturn, gnu::noinline]] void throw_pending();
  /// Makes a new fiber one of this thread's.
  void start(control_block& fiber) noexcept {
    fibers_.push_back(fiber);
    ++living_count_;
    make_runnable(fiber);
    queue_.arrange();
  }
  /// Removes an ended fiber from this thread's.
  void forget(control_block& fiber) noexcept {
    list<control_block, fibers_tag>::remove(fiber);
    --living_count_;
  }
  /// The running fiber has ended. If the next fiber has a stack, control transfers to it for good.
  /// Otherwise this call returns:
  /// Returns: the next fiber, which starts on the current stack.
  inline control_block& hand_on_for_good() noexcept;
  /// Gives back the stack of a fiber that has ended, if the fiber could not do so itself.
  void give_back_retired_stack() noexcept {
    if (retired_stack_.region.bottom != nullptr) [[unlikely]]
      give_back_retired_stack_now();
  }
  /// Whether the running fiber has just failed to get one of several locks, and gives up the rest.
  bool backs_off() const noexcept { return backing_off_ == runner_; }
  void backs_off(bool enable) noexcept { backing_off_ = enable ? runner_ : nullptr; }

 protected:
  // Off the path of a switch: in core/switchpoint.cpp, core/store/stacks.cpp and cancellation/.
  [[gnu::noinline]] void tick() noexcept;
  [[gnu::noinline]] void snooze_alone() noexcept;
  [[gnu::noinline]] void wait_for_work() noexcept;
  [[gnu::noinline]] control_block& pop_of_many() noexcept;
  [[gnu::noinline]] control_block& pop_awaited() noexcept;
  [[gnu::noinline]] void give_back_retired_stack_now() noexcept;
  [[gnu::noinline]] void give_stack(control_block& fresh) noexcept;
  [[gnu::noinline]] void exchange_exceptions(control_block& next, control_block& previous) noexcept;
  [[gnu::noinline]] bool must_throw_slowly() noexcept;
  [[gnu::noinline]] void sound_alarm() noexcept;
  [[gnu::noinline]] void tell_of_wake(const control_block& fiber) noexcept;
  bool interrupted_at_once() noexcept;
  void look_between_calls() noexcept;
  /// The next look is to come after this many switches.
  void count_down_from(int countdown) noexcept {
    until_look_ = countdown;
    if (recorded_ || no_switch_ != nullptr) [[unlikely]] {
      held_back_ = countdown - 1;
      until_look_ = 1;
    }
  }
  /// At a switch that is recorded.
  /// Returns: whether it is time for a look.
  bool look_is_due() noexcept {
    until_look_then_ = 0;
    if (held_back_ == 0) return true;
    --held_back_;
    until_look_ = 1;
    return false;
  }

  static constexpr int calls_between_looks = 256;

  control_block* runner_ = nullptr;
  run_queue<control_block> queue_;
  int until_look_ = 1;
  int held_back_ = 0;  // rest of the countdown, kept at 1 while switches are recorded or forbidden
  const call_site* no_switch_ = nullptr;  // the call site of that request
  bool recorded_ = false;
  bool wakes_are_told_ = false;  // to the recorder, or to a foreign loop
  int alarm_ = -1;               // of the latter
  int calls_in_a_row_ = 0;       // that did not wait, since the last switch
  int until_look_then_ = 0;      // at the last such call: a switch, or a poll, changes it
  int calls_until_look_ = calls_between_looks;  // see deliver()
  const control_block* backing_off_ = nullptr;
  std::array<std::size_t, 2> wakers_{};  // what may wake lasting fibers, and transient ones
  exception_state* live_exceptions_ = nullptr;
  int* live_errno_ = nullptr;
  retired_stack retired_stack_;  // the fiber that ends next, or the next poll, gives it back
  mailbox* mail_ = nullptr;
  list<control_block, fibers_tag> fibers_;
  std::size_t living_count_ = 0;  // spun fibers that are not dead
  clock::time_point reading_{};   // of the clock, or of the counter, at the last poll that asked
  const std::uintptr_t mark_ = this_thread_mark();

 private:
  friend class order_of_world;  // of a simulation
  void enqueue(control_block& fiber) noexcept;
  void count_switch() noexcept;
  control_block& next_runnable() noexcept;
  control_block& take_first() noexcept;
  control_block& pop_first() noexcept;
  void switch_to(control_block& next, control_block& previous) noexcept;
  void install(control_block& next, control_block& previous) noexcept;
};

[[gnu::always_inline]] inline wake_reason thread_core::park(wait_record& wait) noexcept {
  control_block& fiber = *runner_;
  wait.fiber = &fiber;
  if (fiber.interrupts != 0 && wait.interruptible && interrupted_at_once() &&
      wait.claim(wake_reason::interrupted)) [[unlikely]]
    return wake_reason::interrupted;
  wait.start = reading_;
  fiber.wait = &wait;
  fiber.state.store(fiber_state::waiting, std::memory_order_relaxed);
  control_block& next = next_runnable();
  if (&next != &fiber) switch_to(next, fiber);
  fiber.wait = nullptr;
  return wait.ended();
}

inline bool thread_core::resume(wait_record& wait, wake_reason reason) noexcept {
  if (!wait.claim(reason)) return false;
  make_runnable(*wait.fiber);
  return true;
}

inline void thread_core::make_runnable(control_block& fiber) noexcept {
  if (wakes_are_told_) [[unlikely]]
    tell_of_wake(fiber);
  enqueue(fiber);
}

inline void thread_core::enqueue(control_block& fiber) noexcept {
  fiber.state.store(fiber_state::runnable, std::memory_order_relaxed);
  queue_.push_back(fiber);
}

[[gnu::always_inline]] inline void thread_core::snooze() noexcept {
  control_block& fiber = *runner_;
  enqueue(fiber);
  count_switch();
  if (queue_.front_linked() == &fiber) [[unlikely]] {
    snooze_alone();
  } else {
    switch_to(take_first(), fiber);
  }
}

[[gnu::always_inline]] inline void thread_core::count_switch() noexcept {
  if (--until_look_ == 0) [[unlikely]]
    tick();
}

/// Polls before it takes, so that what a poll makes runnable waits in line like all the others.
[[gnu::always_inline]] inline control_block& thread_core::next_runnable() noexcept {
  count_switch();
  while (queue_.empty()) [[unlikely]]
    wait_for_work();
  return take_first();
}

[[gnu::always_inline]] inline control_block& thread_core::pop_first() noexcept {
  if (queue_.in_ring()) [[unlikely]]
    return pop_of_many();
  return queue_.pop_linked();
}

[[gnu::always_inline]] inline control_block& thread_core::take_first() noexcept {
  control_block& next = pop_first();
  next.state.store(fiber_state::running, std::memory_order_relaxed);
  return next;
}

[[gnu::always_inline]] inline void thread_core::switch_to(control_block& next,
                                                          control_block& previous) noexcept {
  previous.saved_errno = *live_errno_;
  if (next.resume_context.stack_pointer == nullptr) [[unlikely]]
    give_stack(next);
  install(next, previous);
  switch_context(previous.resume_context, next.resume_context);
}

/// Makes `next` the running fiber in all but the context. Few fibers wait in a handler, or in a
/// destructor that an exception runs.
[[gnu::always_inline]] inline void thread_core::install(control_block& next,
                                                        control_block& previous) noexcept {
  const exception_state& live = *live_exceptions_;
  if ((bits_of(live.chain, live.uncaught) | bits_of(next.chain, next.uncaught)) != 0) [[unlikely]]
    exchange_exceptions(next, previous);
  *live_errno_ = next.saved_errno;
  runner_ = &next;
}

}}}  // namespace motet::MOTET_ABI::detail
