// SPDX-License-Identifier: MIT
// See migration/journey.hpp: how a traveller runs on a thread, leaves it, and is awaited there. One
// atomic operation, or one post, passes a traveller from one thread to another; the sending thread
// does not access the traveller, or the journey's unlocked state, afterwards.
#include <cstdlib>
#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/scopes.hpp"
#include "core/hooks.hpp"
#include "core/mail/mailbox.hpp"
#include "core/recording/recorder.hpp"
#include "fibers/family.hpp"
#include "migration/journey.hpp"
#include "migration/visit.hpp"
#include "runtime/dumps/leaks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr auto never = clock::time_point::max();

}  // namespace

residence::residence(journey& made_by, thread_state& there, control_block& as) noexcept
    : trip(made_by), thread(there), block(as) {
  returning.to = this;
  returning.handle_post = [](post& item, thread_state&) noexcept {
    residence& reached = *static_cast<homing&>(item).to;
    reached.back = true;
    reached.look();
  };
  recall.fiber = &as;
  recall.fire = [](timer& due) noexcept { static_cast<recall_timer&>(due).from->look(); };
  recall.from = this;
}

bool residence::is_home() const noexcept {
  return &block == &trip.fiber;
}

bool residence::ends_here() const noexcept {
  const std::lock_guard in(trip.sharing);
  return is_home() && trip.residences == this;
}

bool residence::leaves_children() const noexcept {
  const cold_part* part = cold_if_any(block);
  return part->failures != nullptr || part->own_family.next != nullptr || part->own_family.size > 0;
}

void residence::enlist() noexcept {
  const std::lock_guard in(trip.sharing);
  next = std::exchange(trip.residences, this);
}

void residence::unlist_locked() noexcept {
  residence** each = &trip.residences;
  while (*each != this) each = &(*each)->next;
  *each = next;
}

void residence::unlist() noexcept {
  const std::lock_guard in(trip.sharing);
  unlist_locked();
}

void residence::open() {
  thread.time.reserve(1);  // to call it back
  try {
    own_state.runs_on = thread.store.stacks.take(thread.settings().stack_size);
  } catch (...) {
    thread.time.unreserve();
    throw;
  }
  const stack& given = own_state.runs_on;
  own_state.exceptions = {};
  sanitizer::describe(waiting.watched, given.bottom, given.size(), true);
  const auto top = reinterpret_cast<std::uintptr_t>(given.top) & ~std::uintptr_t{15};
  lay_out(waiting, reinterpret_cast<void*>(top), &residence::begin, this);
  trip.home_open = true;
}

void residence::close() noexcept {
  trip.home_open = false;
  thread.time.unreserve();
  sanitizer::forget(waiting.watched, own_state.runs_on.bottom, own_state.runs_on.size());
  thread.store.stacks.give_back(own_state.runs_on);
}

/// The home residence's code, which begins when the traveller has left home.
void residence::begin(void* home) {
  residence& home_residence = *static_cast<residence*>(home);
  sanitizer::after_switch(home_residence.waiting.watched);
  home_residence.take_leave();
  while (home_residence.send_on()) home_residence.let_run();
  std::abort();  // send_on() never returns false at home, and the last let_run() does not return
}

void residence::let_run() noexcept {
  attach();
  own_state.exceptions = std::exchange(thread.exceptions(), trip.traveller_state.exceptions);
  own_state.error_number = std::exchange(thread.error_number(), trip.traveller_state.error_number);
  waiting.watched = std::exchange(block.resume_context.watched, trip.where.watched);
  own_state.runs_on = std::exchange(block.runs_on, trip.traveller_state.runs_on);
  trip.home_closes = ends_here();
  if (thread.recorded()) thread.recording->note(trace::kind::arrive, trip.fiber.id);
  switch_context(waiting, trip.where, trip.home_closes);
  take_leave();
}

void residence::take_leave() noexcept {
  trip.traveller_state.exceptions = std::exchange(thread.exceptions(), own_state.exceptions);
  trip.traveller_state.error_number = std::exchange(thread.error_number(), own_state.error_number);
  if (thread.recorded()) thread.recording->note(trace::kind::leave, trip.fiber.id);
  block.resume_context.watched = waiting.watched;
  trip.traveller_state.runs_on = std::exchange(block.runs_on, own_state.runs_on);
  detach();
}

bool residence::send_on() noexcept {
  const bool kept = lasts();
  if (!kept) unlist();
  if (residence* to = std::exchange(trip.back_to, nullptr)) {
    race_point();
    to->thread.mail().push(to->returning);
  } else if (!post_on()) {
    if (!kept) enlist();
    return true;
  }
  if (visit* left = std::exchange(of, nullptr)) left->end();
  const bool runs_on_here = kept && await_back();
  if (!runs_on_here) keep_timers(0);
  return runs_on_here;
}

/// Returns: false if the traveller has not left.
bool residence::post_on() noexcept {
  const std::shared_ptr<migration_attempt> attempt = std::move(trip.leaving);
  {
    const std::lock_guard in(trip.sharing);
    attempt->number = ++trip.attempts;
    trip.sender = &attempt->answers_to;
    trip.on_its_way.store(attempt->number, std::memory_order_release);
    if (&attempt->answers_to != this && (trip.wanted || trip.due != never)) nudge(trip);
  }
  race_point();
  cold_part& part = cold(block);
  part.sends = true;
  ++block.shields;
  std::exception_ptr why;
  try {
    executor_access::send(attempt->to, arrival(attempt));
  } catch (...) {
    why = std::current_exception();
  }
  --block.shields;
  part.sends = false;
  attempt->posting = false;
  if (attempt->at_once) return false;
  if (why == nullptr || !attempt->claim()) return true;
  trip.refused = std::move(why);
  return false;
}

/// Recalls the traveller if it is still in transit from here.
/// Returns: whether it was.
bool residence::call_back() noexcept {
  const std::lock_guard in(trip.sharing);
  std::uint64_t number = trip.attempts;
  if (trip.sender != this ||
      !trip.on_its_way.compare_exchange_strong(number, 0, std::memory_order_acq_rel))
    return false;
  trip.called_back = true;
  return true;
}

/// Returns: when to recall the traveller, in transit from here: immediately if an interruption was
///          forwarded to it, else at its earliest deadline. Simulated time does not pass in
///          transit.
clock::time_point residence::recall_at() noexcept {
  const std::lock_guard in(trip.sharing);
  if (trip.sender != this) return never;
  if (trip.wanted) return clock::time_point::min();
  return trip.departed_virtually || thread.time.virtual_time() ? never : trip.due;
}

void residence::look() noexcept {
  if (away != nullptr) thread.resume(*away, wake_reason::handed);
}

void residence::await_news() noexcept {
  wait_record wait(its_stack);
  wait.for_token = true;
  away = &wait;
  family& children = cold(block).own_family;
  children.waits_until = until::all_over;
  if (only_for_children()) children.owner_wait = &wait;
  thread.add_pending(block);
  thread.park(wait);
  thread.remove_pending(block);
  children.owner_wait = nullptr;
  away = nullptr;
}

/// Waits until the traveller is to run here again; forwards requests to the block meanwhile.
/// Returns: false if the residence has left the journey instead.
bool residence::await_back() noexcept {
  while (!back) {
    pass_on();
    if (only_for_children() && cancelled) {
      cancel_family(cold(block).own_family, asked_by(block, "its thread ends"));
    }
    if (only_for_children() && try_to_leave()) return false;
    const clock::time_point due = recall_at();
    const bool passed = due <= thread.time.now();
    if (passed && call_back()) return true;
    recall.due = due;
    if (!passed && due != never) thread.time.arm(recall);
    await_news();
    thread.time.disarm(recall);
  }
  back = false;
  return true;
}

/// Takes the residence out of the journey when its last child has ended, unless the traveller is on
/// its way here to end it.
bool residence::try_to_leave() noexcept {
  if (leaves_children()) return false;
  const std::lock_guard in(trip.sharing);
  if (expected) return false;
  unlist_locked();
  return true;
}

/// Out of line: g++ 12 would believe that the executor before, which is none, is looked at.
void residence::note_server(const executor& to) noexcept {
  served = to;
}

void receive(const migration_attempt& attempt, thread_state& here, visit* of) noexcept {
  journey& trip = attempt.trip;
  residence at(trip, here, here.running());
  at.note_server(attempt.to);
  at.of = of;
  if (here.foreign) {
    at.block.interrupts |= interrupt_waits;
    cold(at.block).own_family.closed = true;
  }
  try {
    at.keep_timers(timers_of_scopes(trip.traveller_state.scopes));
  } catch (...) {
    send_back(attempt, std::current_exception());
    if (of != nullptr) of->end();
    return;
  }
  at.enlist();
  do {
    at.let_run();
  } while (at.send_on());
}

}}}  // namespace motet::MOTET_ABI::detail
