// SPDX-License-Identifier: MIT
// When the backend is looked at, and what comes of it: completions, timers and mail make fibers
// runnable, nothing more.
#include <algorithm>
#include <chrono>

#include "ground/ticks.hpp"
#include "heart/thread_state.hpp"
#include "words/kept_errno.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Every so many switches the inbox and the counter are looked at.
constexpr std::size_t switches_between_looks = 16;

constexpr auto a_nap = std::chrono::milliseconds(20);

/// To fall asleep and to wake up takes about as long, and what is due meanwhile is served at once.
/// The kernel's own waits end as late by default: prctl(2), PR_SET_TIMERSLACK.
constexpr auto shortest_sleep = std::chrono::microseconds(50);

}  // namespace

/// Looks again after 16 switches, or just when the number of switches calls for a poll.
void thread_state::set_countdown() noexcept {
  const std::size_t limit = std::max(options_.switches_between_polls, length_at_poll_) + 1;
  const std::size_t left =
      limit > switches_since_poll_ ? limit - switches_since_poll_ : switches_between_looks;
  look_after_ = std::min(switches_between_looks, left);
  until_look_ = static_cast<int>(look_after_);
}

bool thread_state::poll_overdue() const noexcept {
  return ticks() - polled_at_ > ticks_between_polls_;
}

void thread_state::look_around_now() noexcept {
  switches_since_poll_ += look_after_;
  if (mail_->filled()) collect_mail();
  const std::size_t limit = std::max(options_.switches_between_polls, length_at_poll_);
  if (anything_pending() && (switches_since_poll_ > limit || poll_overdue())) {
    poll(false);
  } else {
    set_countdown();
  }
}

void thread_state::collect_mail() noexcept {
  const kept_errno here(*live_errno_);
  for (post* item = mail_->take(); item != nullptr;) {
    post* next = item->next;
    item->arrive(*item, *this);
    item = next;
  }
  if (dump_wanted_.load(std::memory_order_relaxed)) dump_as_asked();
}

/// Returns: whether something came, or is due, before it was time to sleep.
bool thread_state::wait_awake() noexcept {
  return waiting_awake_.wait([this] { return mail_->filled(); },
                             [this] {
                               if (anything_pending()) poll(false);
                               return !queue_.empty();
                             });
}

/// The counter says what time it is for less than the clock does, and is never behind it; but what
/// fires is due by the clock.
inline void thread_state::keep_time(bool waited) noexcept {
  if (!waited) {
    if (timers_.empty()) return;
    reading_ = now();
    if (timers_.first()->due > reading_) return;
  }
  reading_ = tick_clock_.read([&] { return kernel_->now(); });
  if (!timers_.empty()) fire_timers();
}

/// Returns: until when to sleep at the most, with a timer armed; time_point::min() if one is due.
clock::time_point thread_state::end_of_sleep() noexcept {
  const clock::time_point due = timers_.first()->due;
  if (virtual_time_ || due > idle_until_) return std::min(due, idle_until_);
  const clock::time_point present = now();
  return due <= present ? clock::time_point::min() : std::max(due, present + shortest_sleep);
}

void thread_state::poll(bool wait) noexcept {
  const kept_errno here(*live_errno_);
  if (mail_->filled()) {
    collect_mail();
    if (wait) return;  // what it changed decides whether there is anything to wait for
  }
  if (wait && waiting_awake_.worthwhile() && wait_awake()) return;
  auto deadline = backend::time_point::min();
  if (wait) deadline = timers_.empty() ? idle_until_ : end_of_sleep();
  wait = deadline != backend::time_point::min();
  if (wait && !mail_->announce_sleep(takes_jobs_ && pending_[0] == 0)) return;
  completions done;
  if (wait) {
    awake_thread::sleep();
    kernel_->poll(deadline, done);
    awake_thread::wake();
    mail_->awake();
    if (mail_->filled()) waiting_awake_.learn(polled_at_);
  } else {
    kernel_->poll(deadline, done);
  }
  while (operation* op = done.pop()) complete(*op);
  keep_time(wait);
  polled_at_ = ticks();
  switches_since_poll_ = 0;
  length_at_poll_ = queue_.size();
  submitted_since_poll_ = false;
  set_countdown();
}

/// All that are due at the one reading of this poll. Firing makes runnable and arms nothing, so a
/// fiber that sleeps again and again for no time cannot hold this loop.
void thread_state::fire_timers() noexcept {
  for (timer* first = timers_.first(); first != nullptr && first->due <= reading_;
       first = timers_.first()) {
    disarm(*first);
    first->fire(*first);
  }
}

/// Nobody is runnable: sleeps until somebody may be.
void thread_state::rest_now() noexcept {
  if (pending_[0] == 0 && !mail_->filled() && end_idle()) return;
  // To give memory back takes longer than many a nap.
  const bool for_long = timers_.empty() || timers_.first()->due > reading_ + a_nap;
  poll(!(for_long && stacks_.trim()));
  if (stuck_) [[unlikely]]
    look_whether_stuck();
}

/// Somebody else may have helped.
void thread_state::look_whether_stuck() noexcept {
  if (pending_[0] == 0 && queue_.empty()) return;
  stuck_ = false;
  kernel_->keep_pace(false);
  report_at_ = idle_until_ = clock::time_point::max();
  between_looks_ = {};
}

void thread_state::arm(timer& alarm) noexcept {
  timers_.push(alarm);
  pend(*alarm.fiber);
}

void thread_state::disarm(timer& alarm) noexcept {
  if (!alarm.armed()) return;
  timers_.remove(alarm);
  unpend(*alarm.fiber);
}

}}}  // namespace motet::MOTET_ABI::detail
