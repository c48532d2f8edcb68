// SPDX-License-Identifier: MIT
// See migration/journey.hpp: how a traveller runs on a thread, leaves it, and is awaited there. One
// atomic operation, or one post, passes a traveller from one thread to another; the sending thread
// does not access the traveller, or the journey's unlocked state, afterwards.
#include <cstdlib>
#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/scopes.hpp"
#include "core/event_recorder.hpp"
#include "core/mail/mailbox.hpp"
#include "fibers/family.hpp"
#include "migration/journey.hpp"
#include "migration/visit.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr auto no_deadline = clock::time_point::max();

}  // namespace

residence::residence(journey& made_by, thread_state& home_thread, control_block& host) noexcept
    : trip(made_by), thread(home_thread), block(host) {
  return_post.target = this;
  return_post.handle_post = [](post& item, thread_state&) noexcept {
    residence& target = *static_cast<homing&>(item).target;
    target.returned = true;
    target.look();
  };
  recall.fiber = &host;
  recall.fire = [](timer& due) noexcept { static_cast<recall_timer&>(due).owner->look(); };
  recall.owner = this;
}

bool residence::is_home() const noexcept {
  return &block == &trip.fiber;
}

bool residence::ends_here() const noexcept {
  const std::lock_guard lock(trip.sharing);
  return is_home() && trip.residences == this;
}

bool residence::has_children() const noexcept {
  const cold_part* part = cold_if_any(block);
  return part->failures != nullptr || part->own_family.next != nullptr || part->own_family.size > 0;
}

void residence::enlist() noexcept {
  const std::lock_guard lock(trip.sharing);
  next = std::exchange(trip.residences, this);
}

void residence::unlist_locked() noexcept {
  residence** link = &trip.residences;
  while (*link != this) link = &(*link)->next;
  *link = next;
}

void residence::unlist() noexcept {
  const std::lock_guard lock(trip.sharing);
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
  const stack& memory = own_state.runs_on;
  own_state.exceptions = {};
  sanitizer::describe(own_context.shadow, memory.bottom, memory.size(), true);
  const auto top = reinterpret_cast<std::uintptr_t>(memory.top) & ~std::uintptr_t{15};
  lay_out(own_context, reinterpret_cast<void*>(top), &residence::begin, this);
  trip.home_stage = journey::home_state::open;
}

void residence::close() noexcept {
  trip.home_stage = journey::home_state::closed;
  thread.time.unreserve();
  sanitizer::forget(own_context.shadow, own_state.runs_on.bottom, own_state.runs_on.size());
  thread.store.stacks.give_back(own_state.runs_on);
}

/// The home residence's code, which begins when the traveller has left home.
void residence::begin(void* home) {
  residence& home_residence = *static_cast<residence*>(home);
  sanitizer::after_switch(home_residence.own_context.shadow);
  home_residence.depart();
  while (home_residence.send_on()) home_residence.let_run();
  std::abort();  // send_on() never returns false at home, and the last let_run() does not return
}

void residence::let_run() noexcept {
  attach();
  own_state.exceptions = std::exchange(thread.exceptions(), trip.traveller_state.exceptions);
  own_state.error_number = std::exchange(thread.error_number(), trip.traveller_state.error_number);
  own_context.shadow = std::exchange(block.resume_context.shadow, trip.saved_context.shadow);
  own_state.runs_on = std::exchange(block.runs_on, trip.traveller_state.runs_on);
  const bool ends = ends_here();
  if (ends) trip.home_stage = journey::home_state::closing;
  if (thread.recorded()) thread.recording->note(trace::kind::arrive, trip.fiber.id);
  switch_context(own_context, trip.saved_context, ends);
  depart();
}

void residence::depart() noexcept {
  trip.traveller_state.exceptions = std::exchange(thread.exceptions(), own_state.exceptions);
  trip.traveller_state.error_number = std::exchange(thread.error_number(), own_state.error_number);
  if (thread.recorded()) thread.recording->note(trace::kind::leave, trip.fiber.id);
  block.resume_context.shadow = own_context.shadow;
  trip.traveller_state.runs_on = std::exchange(block.runs_on, own_state.runs_on);
  detach();
}

bool residence::send_on() noexcept {
  const bool stays = lasts();
  if (!stays) unlist();
  if (residence* target = std::exchange(trip.back_to, nullptr)) {
    race_point();
    target->thread.mail().push(target->return_post);
  } else if (!post_on()) {
    if (!stays) enlist();
    return true;
  }
  if (visit* ending_visit = std::exchange(stay, nullptr)) ending_visit->end();
  const bool runs_on_here = stays && await_back();
  if (!runs_on_here) reserve_timers(0);
  return runs_on_here;
}

/// Returns: false if the traveller has not left.
bool residence::post_on() noexcept {
  const std::shared_ptr<migration_attempt> attempt = std::move(trip.departure);
  {
    mailbox::deferred_wake wake;
    const std::lock_guard lock(trip.sharing);
    attempt->number = ++trip.attempts;
    trip.sender = &attempt->answers_to;
    trip.on_its_way.store(attempt->number, std::memory_order_release);
    const bool has_deadline = trip.last_clock.due != no_deadline;
    if (&attempt->answers_to != this && (trip.wanted || has_deadline)) nudge(trip, wake);
  }
  race_point();
  cold_part& part = cold(block);
  part.sends = true;
  ++block.shields;
  std::exception_ptr error;
  try {
    executor_access::send(attempt->target, arrival(attempt));
  } catch (...) {
    error = std::current_exception();
  }
  --block.shields;
  part.sends = false;
  attempt->posting = false;
  if (attempt->at_once) return false;
  if (error == nullptr || !attempt->claim()) return true;
  trip.refusal = std::move(error);
  return false;
}

/// Recalls the traveller if it is still in transit from here.
/// Returns: whether it was.
bool residence::call_back() noexcept {
  const std::lock_guard lock(trip.sharing);
  std::uint64_t number = trip.attempts;
  if (trip.sender != this ||
      !trip.on_its_way.compare_exchange_strong(number, 0, std::memory_order_acq_rel))
    return false;
  trip.called_back = true;
  return true;
}

/// Returns: when to recall the traveller, in transit from here: immediately if an interruption was
///          forwarded to it, else at its earliest deadline, unless no time passes in transit.
clock::time_point residence::recall_at() noexcept {
  const std::lock_guard lock(trip.sharing);
  if (trip.sender != this) return no_deadline;
  if (trip.wanted) return clock::time_point::min();
  return crosses_clocks() ? no_deadline : trip.last_clock.due;
}

void residence::look() noexcept {
  if (absence != nullptr) thread.resume(*absence, wake_reason::handed);
}

void residence::await_news() noexcept {
  wait_record wait(its_stack);
  wait.kind = wait_kind::token;
  absence = &wait;
  family& children = cold(block).own_family;
  children.waits_until = until::all_over;
  if (only_for_children()) children.owner_wait = &wait;
  thread.add_pending(block);
  thread.park(wait);
  thread.remove_pending(block);
  children.owner_wait = nullptr;
  absence = nullptr;
}

/// Waits until the traveller is to run here again; forwards requests to the block meanwhile.
/// Returns: false if the residence has left the journey instead.
bool residence::await_back() noexcept {
  while (!returned) {
    pass_on();
    if (only_for_children() && cancelled) {
      cancel_family(cold(block).own_family, asked_by(block, "its thread ends"));
    }
    if (only_for_children() && try_to_leave()) return false;
    const clock::time_point due = recall_at();
    const bool late = due <= thread.time.now();
    if (late && call_back()) return true;
    recall.due = due;
    if (!late && due != no_deadline) thread.time.arm(recall);
    await_news();
    thread.time.disarm(recall);
  }
  returned = false;
  return true;
}

/// Takes the residence out of the journey when its last child has ended, unless the traveller is on
/// its way here to end it.
bool residence::try_to_leave() noexcept {
  if (has_children()) return false;
  const std::lock_guard lock(trip.sharing);
  if (expected) return false;
  unlist_locked();
  return true;
}

/// Out of line: g++ 12 would believe that the executor before, which is none, is looked at.
void residence::note_server(const executor& server) noexcept {
  host_executor = server;
}

void receive(const migration_attempt& attempt, thread_state& thread, visit* stay) noexcept {
  journey& trip = attempt.trip;
  residence guest(trip, thread, thread.running());
  guest.note_server(attempt.target);
  guest.stay = stay;
  if (thread.foreign) {
    guest.block.interrupts |= interrupt_waits;
    cold(guest.block).own_family.closed = true;
  }
  try {
    guest.reserve_timers(timers_of_scopes(trip.traveller_state.scopes));
  } catch (...) {
    send_back(attempt, std::current_exception());
    if (stay != nullptr) stay->end();
    return;
  }
  guest.enlist();
  do {
    guest.let_run();
  } while (guest.send_on());
}

}}}  // namespace motet::MOTET_ABI::detail
