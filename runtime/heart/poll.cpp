// SPDX-License-Identifier: MIT
// When the backend is looked at, and what comes of it: completions, timers and mail make fibers
// runnable, nothing more.
#include <chrono>

#include "heart/thread_state.hpp"
#include "words/kept_errno.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr auto a_nap = std::chrono::milliseconds(20);

}  // namespace

void thread_state::look_around_now() noexcept {
  give_back_left_stack();
  schedule.looked();
  if (mail_->filled()) collect_mail();
  if (anything_pending() && schedule.due()) {
    poll(false);
  } else {
    if (counted.on()) [[unlikely]]
      tell(*this);
    until_look_ = counted.from(schedule.countdown());
  }
}

void thread_state::collect_mail() noexcept {
  const kept_errno here(*live_errno_);
  for (post* item = mail_->take(); item != nullptr;) {
    if (counted.on()) [[unlikely]]
      counted.numbers().mail.add(1);
    post* next = item->next;
    item->handle_post(*item, *this);
    item = next;
  }
  if (dumps.wanted()) dumps.write();
}

/// Returns: whether something came, or is due, before it was time to sleep.
bool thread_state::wait_awake() noexcept {
  mail_->announce_look();
  const bool came = adaptive_spin_.wait([this] { return mail_->filled(); },
                                        [this] {
                                          if (anything_pending()) poll(false);
                                          return !queue_.empty();
                                        });
  mail_->awake();
  return came;
}

/// The counter says what time it is for less than the clock does, and is never behind it; but what
/// fires is due by the clock, and by the one reading of this poll.
inline void thread_state::keep_time(bool waited) noexcept {
  if (!waited) {
    if (time.empty()) return;
    reading_ = time.now();
    if (time.first()->due > reading_) return;
  }
  reading_ = time.read_clock();
  if (!time.empty()) time.fire_due(reading_, counted.on() ? &counted.numbers() : nullptr);
}

void thread_state::poll(bool wait) noexcept {
  const kept_errno here(*live_errno_);
  give_back_left_stack();
  if (mail_->filled()) {
    collect_mail();
    if (wait) return;  // what it changed decides whether there is anything to wait for
  }
  if (wait && adaptive_spin_.worthwhile() && wait_awake()) return;
  auto deadline = backend::time_point::min();
  if (wait)
    deadline = time.empty() ? idle.look_again_at() : time.end_of_sleep(idle.look_again_at());
  wait = deadline != backend::time_point::min();
  if (wait && !mail_->announce_sleep(jobs.taken && !lasting_pending())) return;
  const bool counts = counted.on();
  const std::size_t runnable_before = queue_.size();
  if (counts && wait) [[unlikely]]
    tell(*this);
  completions done;
  if (wait) {
    if (counts) [[unlikely]]
      counted.before_sleep();
    awake_thread::sleep();
    kernel_->poll(deadline, done);
    awake_thread::wake();
    if (counts) [[unlikely]]
      counted.after_sleep();
    mail_->awake();
    if (mail_->filled()) adaptive_spin_.learn(schedule.polled_at());
  } else {
    kernel_->poll(deadline, done);
  }
  while (operation* op = done.pop()) calls.complete(*op);
  keep_time(wait);
  if (counts) [[unlikely]] {
    counted.numbers().polls.add(1);
    tell(*this, queue_.size() - runnable_before);
  }
  schedule.polled(queue_.size());
  calls.polled();
  until_look_ = counted.from(schedule.countdown());
}

/// No fiber is runnable: sleeps until one may be.
void thread_state::rest_now() noexcept {
  if (!lasting_pending() && !mail_->filled() && idle.end_idle()) return;
  // To give memory back takes longer than many a nap.
  const bool for_long = time.empty() || time.first()->due > reading_ + a_nap;
  poll(!(for_long && store.stacks.trim()));
  idle.look_after_sleep();
}

}}}  // namespace motet::MOTET_ABI::detail
