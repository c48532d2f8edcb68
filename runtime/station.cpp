// SPDX-License-Identifier: MIT
// See journey.hpp: how a traveller is let run on a thread, leaves it, and is awaited there. Who has
// the traveller changes hands with one atomic operation, or one message; whoever gave it away does
// not touch it, or its journey, again.
#include <cstdlib>
#include <utility>

#include "journey.hpp"
#include "mailbox.hpp"
#include "traveller.hpp"

namespace motet::inline MOTET_ABI::detail {

station::station(journey& made_by, thread_state& there, control_block& as) noexcept
    : whose(made_by), thread(there), block(as) {
  returning.to = this;
  returning.arrive = [](post& item, thread_state&) noexcept {
    station& reached = *static_cast<homing&>(item).to;
    reached.back = true;
    if (reached.away != nullptr) reached.thread.resume(*reached.away, wake_reason::handed);
  };
  recall.fiber = &as;
  recall.fire = [](timer& due) noexcept {
    station& left = *static_cast<recall_timer&>(due).from;
    if (left.away != nullptr) left.thread.resume(*left.away, wake_reason::handed);
  };
  recall.from = this;
}

bool station::is_home() const noexcept {
  return &block == &whose.fiber;
}

bool station::ends_here() const noexcept {
  const std::lock_guard in(whose.sharing);
  return is_home() && whose.stations == this;
}

bool station::leaves_children() const noexcept {
  const cold_part* part = cold_if_any(block);
  if (part->failures != nullptr || part->own.next != nullptr) return true;
  for (const family* each = &part->own; each != nullptr; each = each->next) {
    if (each->size > 0) return true;
  }
  return false;
}

void station::enlist() noexcept {
  const std::lock_guard in(whose.sharing);
  next = std::exchange(whose.stations, this);
}

void station::unlist() noexcept {
  const std::lock_guard in(whose.sharing);
  station** each = &whose.stations;
  while (*each != this) each = &(*each)->next;
  *each = next;
}

void station::open() {
  runs_on = thread.stacks_.take(thread.settings().stack_size);
  exceptions = {};
  sanitizer::describe(waiting.watched, runs_on.bottom, runs_on.size(), true);
  const auto top = reinterpret_cast<std::uintptr_t>(runs_on.top) & ~std::uintptr_t{15};
  lay_out(waiting, reinterpret_cast<void*>(top), &station::begin, this);
  whose.home_open = true;
}

void station::close() noexcept {
  whose.home_open = false;
  sanitizer::forget(waiting.watched, runs_on.bottom, runs_on.size());
  thread.stacks_.give_back(runs_on);
}

/// The traveller has left home.
void station::begin(void* home) {
  station& own = *static_cast<station*>(home);
  sanitizer::after_switch(own.waiting.watched);
  own.take_leave();
  while (own.send_on()) own.let_run();
  std::abort();  // home lasts, and is closed by the traveller when it was last let run
}

void station::let_run() noexcept {
  board();
  exceptions = std::exchange(*thread.live_exceptions_, whose.exceptions);
  error_number = std::exchange(*thread.live_errno_, whose.error_number);
  waiting.watched = std::exchange(block.where.watched, whose.where.watched);
  runs_on = std::exchange(block.runs_on, whose.runs_on);
  whose.home_closes = ends_here();
  switch_context(waiting, whose.where, whose.home_closes);
  take_leave();
}

void station::take_leave() noexcept {
  whose.exceptions = std::exchange(*thread.live_exceptions_, exceptions);
  whose.error_number = std::exchange(*thread.live_errno_, error_number);
  block.where.watched = waiting.watched;
  whose.runs_on = std::exchange(block.runs_on, runs_on);
  alight();
}

/// The traveller has left its stack: it goes where it wants to.
/// Returns: false if it is gone for good; true when it is to run here.
bool station::send_on() noexcept {
  const bool kept = lasts();
  if (!kept) unlist();
  if (station* to = std::exchange(whose.back_to, nullptr)) {
    last_hop = 0;
    jitter();
    to->thread.mail().push(to->returning);
  } else if (!post_on()) {
    if (!kept) enlist();
    return true;
  }
  const bool runs_on_here = kept && await_back();
  if (!runs_on_here) keep_timers(0);
  return runs_on_here;
}

/// Returns: false if the traveller has not left.
bool station::post_on() noexcept {
  const executor to = *whose.to;
  last_hop = ++whose.hops;
  std::shared_ptr<hop> mine;
  try {
    mine = std::make_shared<hop>(*this, to);
    whose.on_its_way.store(last_hop, std::memory_order_release);
    jitter();
    executor_access::send(to, arrival(mine));
  } catch (...) {
    if (mine != nullptr && !mine->claim()) return true;
    whose.refused = std::current_exception();
    return false;
  }
  mine->posting = false;
  return !mine->at_once;
}

/// An interruption, or the end of one of its scopes, has it come back if it is still on its way.
bool station::call_back() noexcept {
  std::uint64_t number = std::exchange(last_hop, 0);
  if (number == 0 ||
      !whose.on_its_way.compare_exchange_strong(number, 0, std::memory_order_acq_rel))
    return false;
  whose.called_back = true;
  return true;
}

/// Returns: false if it has left the journey instead.
bool station::await_back() noexcept {
  if (recall.due != clock::time_point::max() && last_hop != 0) thread.arm(recall);
  while (!back) {
    const bool for_children = !is_home() && origins == 0;
    if (for_children && try_to_leave()) {
      thread.disarm(recall);
      return false;
    }
    wait_record wait("its stack, which is on another thread");
    wait.for_token = true;
    away = &wait;
    family& children = cold(block).own;
    children.waits_until = until::all_over;
    if (for_children) children.waiter = &wait;
    thread.pend(block);
    const wake_reason woken = thread.park(wait);
    thread.unpend(block);
    children.waiter = nullptr;
    away = nullptr;
    if (back) break;
    const bool due = !recall.armed() && recall.due <= thread.now();
    if ((woken == wake_reason::interrupted || due) && call_back()) break;
    thread.disarm(recall);
    recall.due = clock::time_point::max();
    pass_on();
    if (for_children && cancelled) thread.cancel_family(children, "its thread ends");
  }
  back = false;
  thread.disarm(recall);
  return true;
}

/// When the last child has ended nobody needs to come back, unless somebody is on the way.
bool station::try_to_leave() noexcept {
  if (leaves_children()) return false;
  const std::lock_guard in(whose.sharing);
  if (expected) return false;
  station** each = &whose.stations;
  while (*each != this) each = &(*each)->next;
  *each = next;
  return true;
}

void receive(const hop& mine, thread_state& here) noexcept {
  journey& its = mine.its;
  station at(its, here, here.running());
  if (here.foreign()) {
    at.foreign = mine.to;
    at.block.interrupts |= interrupt_waits;
    cold(at.block).own.closed = true;
  }
  try {
    at.keep_timers(timers_of_scopes(its.scopes));
  } catch (...) {
    send_home(its, std::current_exception());
    return;
  }
  at.enlist();
  do {
    at.let_run();
  } while (at.send_on());
}

}  // namespace motet::inline MOTET_ABI::detail
