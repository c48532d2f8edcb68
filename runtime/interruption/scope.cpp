// SPDX-License-Identifier: MIT
// Entering scopes, ending them, leaving them. What an ended one does is in
// interruption/interrupt.cpp.
#include <motet/cancel.hpp>
#include <stdexcept>

#include "heart/thread_state.hpp"
#include "words/saturating_time.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

scope_entry::scope_entry(scope_kind which) : kind_(which) {
  thread_state& thread = here();
  fiber_ = &thread.running();
  shelter_ = thread.shelter_of(*fiber_);
  outer_ = fiber_->scopes;
  fiber_->scopes = this;
}

scope_entry::~scope_entry() noexcept {
  fiber_->scopes = outer_;
}

scope::scope(call_site site, const char* reason, const std::atomic<bool>* asked_abroad)
    : scope_entry(scope_kind::ends), reason_(reason), asked_abroad_(asked_abroad) {
  thread_state& thread = home_of(*fiber_);
  thread.reserve_timers(1);
  about_.id = thread.next_scope();
  about_.site = site;
  alarm_.owner = this;
  alarm_.fiber = fiber_;
}

scope::~scope() {
  thread_state& thread = home_of(*fiber_);
  thread.disarm(alarm_);
  thread.unreserve_timer();
  if (ended_) thread.leave_ended_scope(*fiber_, *this);
}

void scope::end() noexcept {
  if (ended_) return;
  ended_ = true;
  home_of(*fiber_).interrupt_fiber(*fiber_, interrupt_scope);
}

/// The counter may be ahead of the clock, which has the last word.
void thread_state::end_passed_limits_now() noexcept {
  const timer& first = *timers_.first();
  if (first.due > now()) return;
  const clock::time_point present = kernel_->now();
  if (first.due > present) return;
  for (scope_entry* each = running_->scopes; each != nullptr; each = each->outer_) {
    if (each->kind_ != scope_kind::ends) continue;
    timer& alarm = static_cast<scope&>(*each).alarm_;
    if (!alarm.armed() || alarm.due > present) continue;
    disarm(alarm);
    alarm.fire(alarm);
  }
}

timed_scope::timed_scope(clock::duration limit, call_site site) : scope(site, "its time was up") {
  thread_state& thread = home_of(*fiber_);
  alarm_.due = deadline_after(thread.now(), limit);
  alarm_.fire = [](timer& alarm) noexcept { static_cast<scope_timer&>(alarm).owner->end(); };
  thread.arm(alarm_);
}

bool timed_scope::set_end(clock::time_point due) {
  if (ended_ || alarm_.due <= home_of(*fiber_).now()) return false;
  alarm_.due = due;
  home_of(*fiber_).rearm(alarm_);
  return true;
}

void timed_scope::check_thread() const {
  if (fiber_->home != self()) throw std::logic_error("a deadline belongs to its fiber's thread");
}

}  // namespace detail

bool deadline::reset(detail::timespan limit) {
  scope_.check_thread();
  return scope_.set_end(detail::deadline_after(clock::now(), limit.length));
}

bool deadline::extend(detail::timespan more) {
  scope_.check_thread();
  return scope_.set_end(detail::deadline_after(scope_.due(), more.length));
}

clock::duration deadline::remaining() const {
  scope_.check_thread();
  const clock::time_point present = clock::now();
  return scope_.ended() || scope_.due() <= present ? clock::duration::zero()
                                                   : scope_.due() - present;
}

}}  // namespace motet::MOTET_ABI
