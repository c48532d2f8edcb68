// SPDX-License-Identifier: MIT
// The state that moves with a traveller from one control block to another: its scopes with their
// deadlines, its shields, its fiber_locals, and its pending interruptions.
#include <algorithm>
#include <utility>

#include "base/saturating_time.hpp"
#include "cancellation/child_failures.hpp"
#include "cancellation/interrupt.hpp"
#include "cancellation/scopes.hpp"
#include "migration/journey.hpp"
#include "platform/simulated_threads.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr auto no_deadline = clock::time_point::max();

void clear(control_block& block, interrupt kind) noexcept {
  block.interrupts &= static_cast<std::uint8_t>(~kind);
}

}  // namespace

/// The timers that a traveller has reserved stay so at a residence to which it may come back.
void residence::reserve_timers(std::size_t count) {
  if (count > timers) thread.time.reserve(count - timers);
  for (; timers > count; --timers) thread.time.unreserve();
  timers = count;
}

/// A timer that expired in transit must not wait for a poll: the fiber may leave before.
void residence::arm_or_fire(timer& alarm) noexcept {
  if (alarm.due <= thread.time.now()) {
    alarm.fire(alarm);
  } else {
    thread.time.arm(alarm);
  }
}

/// Whether this thread's clock and that of the traveller's last thread differ: under the simulated
/// backend each thread has a time of its own, but not in a simulated world.
bool residence::crosses_clocks() const noexcept {
  return (thread.time.virtual_time() || trip.last_clock.is_virtual) &&
         simulated_threads::present() == nullptr;
}

void residence::unpack_scopes() noexcept {
  const clock::duration shift =
      crosses_clocks() ? thread.time.now() - trip.last_clock.departed_at : clock::duration::zero();
  for (scope_entry* entry = block.scopes; entry != nullptr; entry = entry->outer) {
    entry->fiber = &block;
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    limit.alarm.fiber = &block;
    if (std::exchange(limit.alarm.packed, false)) {
      limit.alarm.due = by_other_clock(limit.alarm.due, shift);
      arm_or_fire(limit.alarm);
    }
    if (limit.ended) block.interrupts |= interrupt_scope;
  }
}

void residence::pack_scopes() noexcept {
  trip.last_clock.departed_at = thread.time.now();
  trip.last_clock.is_virtual = thread.time.virtual_time();
  trip.last_clock.due = no_deadline;
  for (scope_entry* entry = trip.traveller_state.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    if (!limit.alarm.armed()) continue;
    limit.alarm.packed = true;
    trip.last_clock.due = std::min(trip.last_clock.due, limit.alarm.due);
    thread.time.disarm(limit.alarm);
  }
  timers = timers_of_scopes(trip.traveller_state.scopes);
  clear(block, interrupt_scope);
}

void residence::attach() noexcept {
  own_state.shields = std::exchange(block.shields, trip.traveller_state.shields);
  own_state.scopes = std::exchange(block.scopes, trip.traveller_state.scopes);
  reserve_timers(timers_of_scopes(block.scopes));
  unpack_scopes();
  cold_part& part = cold(block);
  own_state.locals = std::exchange(part.locals, std::move(trip.traveller_state.locals));
  if (is_home()) {
    trip.absent = false;
    take_result();
  } else {
    part.guest = &trip.fiber;
    block.hosts = true;
  }
  if (cancelled) block.interrupts |= interrupt_cancel;
  if (trip.end.asked) lend_end();
  refresh_failures(block);
  forwarded news;
  {
    const std::lock_guard lock(trip.sharing);
    trip.location = this;
    trip.sender = nullptr;
    trip.wanted = false;
    news = std::exchange(trip.news, {});
  }
  apply(std::move(news));
}

void residence::detach() noexcept {
  trip.traveller_state.shields = std::exchange(block.shields, own_state.shields);
  trip.traveller_state.scopes = std::exchange(block.scopes, own_state.scopes);
  pack_scopes();
  cold_part& part = cold(block);
  thread.time.disarm(part.grace);
  reclaim_end();
  trip.traveller_state.locals = std::exchange(part.locals, std::move(own_state.locals));
  if (is_home()) trip.absent = true;
  block.hosts = false;
  forwarded news;
  news.raised = std::exchange(block.raised, nullptr);
  clear(block, interrupt_raised);
  news.token_given = part.token.filled();
  news.token = std::move(part.token);
  const std::lock_guard lock(trip.sharing);
  trip.location = nullptr;
  merge(news, std::move(trip.news));  // `trip.news` is newer
  trip.news = std::move(news);
}

/// At home, stores the result that stop() has given the fiber while it was away.
void residence::take_result() noexcept {
  if (!trip.result.filled() || block.result != result_state::none) return;
  block.kind->emplace(result_storage(block), trip.result);
  block.result = result_state::stands;
}

/// Cancels the block that the traveller runs on, because the traveller was cancelled at home; not
/// if that block's own thread has cancelled it already.
void residence::lend_end() noexcept {
  if (!is_home()) {
    if (block.to_end_for != nullptr && !lent_end) return;
    block.to_end_for = &cold(block).cancellation.reason;
  }
  cold_part& part = cold(block);
  if (!std::exchange(lent_end, true)) part.cancellation = trip.end.cause;
  block.interrupts |= interrupt_cancel;
  if (!part.escalated && trip.end.escalated) {
    part.escalated = true;
    escalate_below(block);
  }
}

void residence::reclaim_end() noexcept {
  cold_part& part = cold(block);
  if ((block.interrupts & interrupt_cancel) == 0) return;
  clear(block, interrupt_cancel);
  if (!is_home() && !lent_end) {
    cancelled = true;
    return;
  }
  trip.end = {true, part.escalated, part.cancellation};
  lent_end = false;
  if (is_home()) return;
  block.to_end_for = nullptr;
  part.cancellation = {};
  part.escalated = false;
}

void residence::pass_on() noexcept {
  cold_part& part = cold(block);
  forwarded news;
  news.raised = std::exchange(block.raised, nullptr);
  const bool cancelled_here = (block.interrupts & interrupt_cancel) != 0;
  cancelled = cancelled || (cancelled_here && !is_home());
  if (cancelled_here && is_home()) {
    news.end = {true, part.escalated, part.cancellation};
  }
  while (std::exception_ptr error = take_error_of_child(block)) {
    try {
      news.failures.push_back(error);
    } catch (const std::bad_alloc&) {
      report_unhandled(thread.settings(), error);
    }
  }
  news.token_given = part.token.filled();
  news.token = std::move(part.token);
  block.interrupts = 0;
  forward(trip, std::move(news));
}

}}}  // namespace motet::MOTET_ABI::detail
