// SPDX-License-Identifier: MIT
// Entering scopes, ending them, leaving them. What an ended scope does to its fiber is in
// cancellation/pending_throw.cpp.
#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/base/atomic.hpp>
#include <optional>
#include <stdexcept>

#include "base/saturating_time.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/thread_state.hpp"
#include "unhandled/snapshots.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

scope_entry::scope_entry(scope_kind type) : kind(type) {
  thread_core& thread = here_core();
  fiber = &thread.running();
  depth = unwind_depth(*fiber, thread);
  outer = fiber->scopes;
  fiber->scopes = this;
}

scope_entry::~scope_entry() noexcept {
  fiber->scopes = outer;
}

scope::scope(call_site site, const char* text, const atomic<bool>* stop_flag,
             const cancel_reason* given_then)
    : scope_entry(scope_kind::ends),
      cause(text, site),
      asked_remotely(stop_flag),
      given_reason(given_then) {
  thread_state& thread = home_of(*fiber);
  thread.time.reserve(1);
  cause.id = thread.store.next_scope();
  alarm.owner = this;
  alarm.fiber = fiber;
}

namespace {

void leave_ended_scope(control_block& fiber, const scope& inner) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_scope);
  for (const scope_entry* entry = inner.outer; entry != nullptr; entry = entry->outer) {
    if (entry->kind == scope_kind::ends && static_cast<const scope*>(entry)->ended) {
      fiber.interrupts |= interrupt_scope;
      return;
    }
  }
}

}  // namespace

scope::~scope() {
  thread_state& thread = home_of(*fiber);
  thread.time.disarm(alarm);
  thread.time.unreserve();
  if (ended) leave_ended_scope(*fiber, *this);
}

void scope::end() noexcept {
  if (ended) return;
  ended = true;
  if (given_reason != nullptr) cause.reason = *given_reason;
  interrupt_fiber(*fiber, interrupt_scope);
}

/// The counter may be ahead of the clock, which has the last word.
void end_passed_limits_now(thread_state& thread) noexcept {
  const timer& first = *thread.time.first();
  if (first.due > thread.time.now()) return;
  const clock::time_point present = thread.kernel().now();
  if (first.due > present) return;
  for (scope_entry* entry = thread.running().scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != scope_kind::ends) continue;
    timer& limit = static_cast<scope&>(*entry).alarm;
    if (!limit.armed() || limit.due > present) continue;
    thread.time.disarm(limit);
    limit.fire(limit);
  }
}

namespace {

constexpr const char* too_late = "its time was up";

void end_at(scope& limit_scope, thread_state& thread, clock::time_point due) noexcept {
  limit_scope.alarm.due = due;
  limit_scope.alarm.fire = [](timer& due_now) noexcept {
    if (due_now.fiber->home->recorded()) save_snapshot(snapshot_cause::deadline);
    static_cast<scope::scope_timer&>(due_now).owner->end();
  };
  thread.time.arm(limit_scope.alarm);
}

}  // namespace

timed_scope::timed_scope(clock::duration limit, call_site site) : scope(site, too_late) {
  thread_state& thread = home_of(*fiber);
  end_at(*this, thread, thread.time.after(limit));
}

/// What is before the clock began is past.
timed_scope::timed_scope(clock::time_point due, call_site site) : scope(site, too_late) {
  end_at(*this, home_of(*fiber), std::max(due, clock::time_point()));
}

bool timed_scope::set_end(clock::time_point later) {
  timers& time = home_of(*fiber).time;
  if (ended || alarm.due <= time.now()) return false;
  alarm.due = later;
  time.rearm(alarm);
  return true;
}

void timed_scope::check_thread() const {
  if (fiber->home != self())
    throw std::logic_error(
        "deadline::reset(): called on a thread other than that of the deadline's fiber");
}

}  // namespace detail

bool deadline::reset(detail::timespan limit) {
  scope_.check_thread();
  return scope_.set_end(detail::deadline_after(clock::now(), limit.length));
}

bool deadline::extend(detail::timespan extension) {
  scope_.check_thread();
  return scope_.set_end(detail::deadline_after(scope_.due(), extension.length));
}

clock::duration deadline::remaining() const {
  scope_.check_thread();
  const clock::time_point present = clock::now();
  return scope_.ended || scope_.due() <= present ? clock::duration::zero() : scope_.due() - present;
}

std::optional<clock::time_point> nearest_deadline() noexcept {
  detail::thread_state* thread = detail::self();
  if (thread == nullptr) return std::nullopt;
  std::optional<clock::time_point> nearest;
  for (auto* entry = thread->running().scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind == detail::scope_kind::shields) break;
    if (entry->kind != detail::scope_kind::ends) continue;
    const auto& limit = static_cast<const detail::scope&>(*entry);
    if (limit.ended) return clock::now();
    if (!limit.alarm.armed()) continue;
    nearest = nearest ? std::min(*nearest, limit.alarm.due) : limit.alarm.due;
  }
  if (nearest) nearest = std::max(*nearest, clock::now());
  return nearest;
}

std::optional<clock::duration> time_left() noexcept {
  const auto nearest = nearest_deadline();
  if (!nearest) return std::nullopt;
  return std::max(*nearest - clock::now(), clock::duration::zero());
}

}}  // namespace motet::MOTET_ABI
