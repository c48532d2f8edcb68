// SPDX-License-Identifier: MIT
// When the backend is polled, and what follows: completions, timers and mail make fibers runnable,
// and do nothing else.
#include <chrono>

#include "base/saved_errno.hpp"
#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr auto a_nap = std::chrono::milliseconds(20);

// For the recorder, and for stats(), if somebody wants either.

bool is_noted(const thread_state& thread) noexcept {
  return thread.recorded() || thread.counts.on();
}

/// Whether the running fiber polls and then continues.
bool goes_on(const thread_state& thread) noexcept {
  return thread.running().state.load(std::memory_order_relaxed) == fiber_state::running;
}

/// Also settles which fiber is next.
/// Returns: whether the running fiber leaves the thread.
bool note_switch(thread_state& thread) noexcept {
  if (goes_on(thread)) return false;
  thread.prefer_awaited();
  thread.recording->note_switch(thread.running(), thread.first_runnable());
  return true;
}

void note_timer(const thread_state& thread, const timer& due) noexcept {
  const clock::duration late = thread.reading() - due.due;
  if (thread.recorded()) thread.recording->timer_is_late(late);
  if (!thread.counts.on()) return;
  thread.counts.numbers().timers_fired.add(1);
  if (thread.time.is_late(late)) thread.counts.numbers().timers_late.add(1);
}

void note_sleep(thread_state& thread) noexcept {
  if (thread.recorded()) thread.recording->note(trace::kind::sleep);
  if (!thread.counts.on()) return;
  tell(thread);
  thread.counts.before_sleep();
}

void note_awake(thread_state& thread) noexcept {
  if (thread.counts.on()) thread.counts.after_sleep();
  if (thread.recorded()) thread.recording->note(trace::kind::awake);
}

void note_operations(const thread_state& thread) noexcept {
  if (thread.recorded()) thread.recording->woken_by(trace::cause::operation);
}

void note_poll(thread_state& thread, std::size_t runnable_before) noexcept {
  if (thread.recorded()) {
    thread.recording->note_poll(thread.runnable(), goes_on(thread));
    thread.recording->note_next(thread.first_runnable());
  }
  if (!thread.counts.on()) return;
  thread.counts.numbers().polls.add(1);
  tell(thread, thread.runnable() - runnable_before);
}

/// Returns: when a sleep must end; time_point::min() if it must not begin.
inline backend::time_point end_of_sleep(thread_state& thread) noexcept {
  const backend::time_point limit = thread.idle.look_again_at();
  return thread.time.empty() ? limit : thread.time.end_of_sleep(limit);
}

inline void poll_kernel(thread_state& thread, backend::time_point deadline,
                        completions& ended_operations) noexcept {
  thread.schedule.in_backend = true;
  thread.kernel().poll(deadline, ended_operations);
  thread.schedule.in_backend = false;
}

/// Sleeps in the backend. The mailbox has announced it, so that mail wakes the thread.
inline void sleep(thread_state& thread, backend::time_point deadline,
                  completions& ended_operations) noexcept {
  const bool noted = is_noted(thread);
  if (noted) [[unlikely]]
    note_sleep(thread);
  awake_thread::sleep();
  poll_kernel(thread, deadline, ended_operations);
  awake_thread::wake();
  if (noted) [[unlikely]]
    note_awake(thread);
  thread.mail().awake();
}

}  // namespace

void thread_state::tick_now() noexcept {
  if (!may_switch() && !goes_on(*this)) [[unlikely]]
    check_may_switch();
  if (recorded_ && note_switch(*this) && !look_is_due()) [[unlikely]]
    return;
  give_back_retired_stack();
  schedule.looked();
  if (mail_->filled()) collect_mail();
  if (anything_pending() && schedule.due()) {
    poll(false);
  } else {
    if (counts.on()) [[unlikely]]
      tell(*this);
    count_down_from(counts.from(schedule.countdown()));
  }
}

void thread_state::collect_mail() noexcept {
  const saved_errno errno_guard(*live_errno_);
  have_loop_look();
  if (recorded_) [[unlikely]]
    recording->woken_by(trace::cause::mail);
  for (post* item = mail_->take(); item != nullptr;) {
    if (counts.on()) [[unlikely]]
      counts.numbers().mail.add(1);
    post* next = item->next;
    item->handle_post(*item, *this);
    item = next;
  }
  if (recorded_) [[unlikely]] {
    recording->woken_by(trace::cause::fiber);
    recording->note_next(queue_.front());
  }
  if (dumps.wanted()) hooks.write_dump(dumps);
}

/// Returns: whether a fiber is runnable.
bool thread_state::look_for_events() noexcept {
  if (anything_pending()) poll(false);
  return !queue_.empty();
}

namespace {

/// Returns: whether something came, or is due, before it was time to sleep.
bool wait_awake(thread_state& thread) noexcept {
  mailbox& mail = thread.mail();
  mail.announce_look();
  const bool came = thread.busy_wait.wait([&] { return mail.filled(); },
                                          [&] { return thread.look_for_events(); });
  mail.awake();
  return came;
}

}  // namespace

/// Reading the counter is cheaper than reading the clock, and the counter never lags behind it. But
/// timers fire by the clock, and all of a poll's timers by one reading.
inline void thread_state::fire_timers(bool waited) noexcept {
  if (!waited) {
    if (time.empty()) return;
    reading_ = time.now();
    if (time.first()->due > reading_) return;
  }
  reading_ = time.read_clock();
  if (!time.empty())
    time.fire_due(reading_, is_noted(*this), [this](const timer& due) { note_timer(*this, due); });
}

void thread_state::poll(bool wait) noexcept {
  const saved_errno errno_guard(*live_errno_);
  have_loop_look();
  give_back_retired_stack();
  if (mail_->filled()) {
    collect_mail();
    if (wait) return;  // what it changed decides whether there is anything to wait for
  }
  if (wait && busy_wait.worthwhile() && wait_awake(*this)) return;
  const auto deadline = wait ? end_of_sleep(*this) : backend::time_point::min();
  const bool sleeps = deadline != backend::time_point::min();
  if (sleeps && !mail_->announce_sleep(jobs.may_come() && !lasting_pending())) return;
  const bool noted = is_noted(*this);
  const std::size_t runnable_before = queue_.size();
  completions ended_operations;
  if (sleeps) {
    sleep(*this, deadline, ended_operations);
    if (mail_->filled()) busy_wait.learn(schedule.polled_at());
  } else {
    poll_kernel(*this, deadline, ended_operations);
  }
  if (noted) [[unlikely]]
    note_operations(*this);
  while (operation* op = ended_operations.pop()) calls.complete(*op);
  fire_timers(sleeps);
  if (noted) [[unlikely]]
    note_poll(*this, runnable_before);
  schedule.polled(queue_.size());
  calls.polled();
  count_down_from(counts.from(schedule.countdown()));
}

/// No fiber is runnable: sleeps until one may have become runnable.
void thread_state::wait_for_work_now() noexcept {
  if (!lasting_pending() && !mail_->filled() && hooks.end_idle(idle)) {
    if (recorded_) recording->note_next(queue_.front());
    return;
  }
  // To give memory back takes longer than many a nap.
  const bool for_long = time.empty() || time.first()->due > reading_ + a_nap;
  poll(!(for_long && store.stacks.trim()));
  if (idle.stuck()) [[unlikely]]
    hooks.look_whether_stuck(idle);
}

}}}  // namespace motet::MOTET_ABI::detail
