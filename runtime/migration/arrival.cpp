// SPDX-License-Identifier: MIT
// See detail/threads/arrival.hpp: how a traveller goes on in the function that an executor calls.
#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/detail/fibers/fiber_start.hpp>
#include <optional>
#include <utility>

#include "base/made_exception.hpp"
#include "cancellation/asked.hpp"
#include "cancellation/interrupt.hpp"
#include "cancellation/pending_throw.hpp"
#include "cancellation/scopes.hpp"
#include "core/mail/mailbox.hpp"
#include "fibers/family.hpp"
#include "migration/journey.hpp"
#include "migration/visit.hpp"
#include "runtime/visitor_runtime.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

migration_attempt::migration_attempt(residence& origin, const executor& destination,
                                     bool returns) noexcept
    : trip(origin.trip),
      target(destination),
      poster(&origin.block),
      answers_to(returns || origin.portals > 0 ? origin : trip.home) {
  retain(trip);
}

void send_back(const migration_attempt& attempt, std::exception_ptr error) noexcept {
  attempt.trip.refusal = std::move(error);
  attempt.answers_to.thread.mail().push(attempt.answers_to.return_post);
}

/// If the executor has not called the function, the traveller goes back: now it cannot be called.
migration_attempt::~migration_attempt() {
  if (in_this_process(trip) && claim()) {
    send_back(*this, made_exception<executor_stopped>());
  }
  release(trip);
}

namespace {

/// On a thread without a runtime of its own, but perhaps with that of another visit, from whose
/// function the executor has called this one.
void visit_foreign_thread(const migration_attempt& attempt) noexcept {
  std::optional<visitor_runtime> runtime;
  try {
    runtime.emplace();
  } catch (...) {
    send_back(attempt, std::current_exception());
    return;
  }
  receive(attempt, *self());
}

/// Parks the fiber that serves the executor, the host, until the guest has left. If the host is
/// cancelled, so is the guest's fiber; all other interruptions of the host wait.
void await_leave(visit& stay, control_block& runs_it) noexcept {
  thread_state& home = *stay.home;
  control_block& host = home.running();
  std::uint8_t waits = 0;
  while (!stay.ended && !home.in_exit(runs_it)) {
    wait_record wait("a fiber that visits it");
    stay.waiter = &wait;
    home.park(wait);
    stay.waiter = nullptr;
    if ((host.interrupts & interrupt_cancel) != 0 && !in_shield(host)) {
      cancel_here(runs_it, asked_by(host, "who let it run there ends"));
    }
    waits |= std::exchange(host.interrupts, std::uint8_t{0});
  }
  host.interrupts |= waits;
}

void come_again(const migration_attempt& attempt, residence& target) noexcept {
  try {
    target.reserve_timers(timers_of_scopes(attempt.trip.traveller_state.scopes));
  } catch (...) {
    send_back(attempt, std::current_exception());
    return;
  }
  target.return_post.handle_post(target.return_post, target.thread);
}

void receive_apart(const migration_attempt& attempt, thread_state& home) noexcept {
  visit stay{.attempt = &attempt, .home = &home};
  handle runs_it;
  try {
    fiber_start fresh(&children_of_main(home), nullptr, body_kind_of<visit_body, void>::kind, {});
    ::new (fresh.body()) visit_body(stay);
    runs_it = fresh.start();
  } catch (const cancelled&) {
    send_back(attempt, made_exception<executor_stopped>());
    return;
  } catch (...) {
    send_back(attempt, std::current_exception());
    return;
  }
  await_leave(stay, *runs_it.get());
}

/// Where the function of an attempt has been called.
enum class calling_place : std::uint8_t {
  in_post,          // by the executor's post() itself, before it has returned
  foreign_thread,   // on a thread that is not motet's
  known_residence,  // on a thread with state that the traveller left behind
  own_fiber,        // in a fiber made for it
  serving_fiber,    // in a fiber that continues after the traveller has left
};

calling_place place_of_call(const migration_attempt& attempt, bool alone) noexcept {
  const thread_state* thread = self();
  if (thread == nullptr) return calling_place::foreign_thread;
  if (&thread->running() == attempt.poster && attempt.posting) return calling_place::in_post;
  if (residence_on(attempt.trip, *thread) != nullptr) return calling_place::known_residence;
  if (thread->foreign) return calling_place::foreign_thread;
  return alone ? calling_place::own_fiber : calling_place::serving_fiber;
}

/// How the traveller is received, a function for each calling_place.
constexpr std::array<void (*)(migration_attempt&) noexcept, 5> arrivals{
    [](migration_attempt& attempt) noexcept { attempt.at_once = true; },
    [](migration_attempt& attempt) noexcept { visit_foreign_thread(attempt); },
    [](migration_attempt& attempt) noexcept {
      come_again(attempt, *residence_on(attempt.trip, *self()));
    },
    [](migration_attempt& attempt) noexcept { receive(attempt, *self()); },
    [](migration_attempt& attempt) noexcept { receive_apart(attempt, *self()); },
};

}  // namespace

void arrive(migration_attempt& attempt, bool alone) noexcept {
  if (!in_this_process(attempt.trip) || !attempt.claim()) return;
  arrivals[static_cast<std::size_t>(place_of_call(attempt, alone))](attempt);
}

void arrival::operator()() const {
  arrive(*attempt_, false);
}

}}}  // namespace motet::MOTET_ABI::detail
