// SPDX-License-Identifier: MIT
// See detail/threads/arrival.hpp: how a traveller goes on in the function that an executor calls.
#include <motet/detail/heart/launch.hpp>
#include <optional>
#include <utility>

#include "heart/hooks.hpp"
#include "heart/mail/mailbox.hpp"
#include "interruption/interrupt.hpp"
#include "interruption/pending_throw.hpp"
#include "process/foreign_visit.hpp"
#include "travel/journey.hpp"
#include "travel/visit.hpp"
#include "words/made_exception.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

hop::hop(station& from, const executor& where, bool returns) noexcept
    : its(from.whose),
      to(where),
      poster(&from.block),
      answers_to(returns || from.portals > 0 ? from : its.home) {
  retain(its);
}

void send_back(const hop& failed, std::exception_ptr why) noexcept {
  failed.its.refused = std::move(why);
  failed.answers_to.thread.mail().push(failed.answers_to.returning);
}

/// If the executor has not called the function, the traveller goes back: now it cannot be called.
hop::~hop() {
  if (in_this_process(its) && claim()) {
    send_back(*this, made_exception<executor_stopped>());
  }
  release(its);
}

namespace {

/// On a thread that has no runtime of its own, but perhaps one of another visit, in whose function
/// the executor has called this one.
void visit_foreign_thread(const hop& mine) noexcept {
  std::optional<foreign_visit> visited;
  try {
    visited.emplace();
  } catch (...) {
    send_back(mine, std::current_exception());
    return;
  }
  receive(mine, *self());
}

/// Parks the fiber that serves the executor, the host, until the guest has left. If the host is
/// cancelled, so is the guest's fiber; all other interruptions of the host wait.
void await_leave(visit& guest, control_block& runs_it) noexcept {
  thread_state& home = *guest.home;
  control_block& host = home.running();
  std::uint8_t waits = 0;
  while (!guest.over && !home.in_exit(runs_it)) {
    wait_record wait("a fiber that visits it");
    guest.waiting = &wait;
    home.park(wait);
    guest.waiting = nullptr;
    if ((host.interrupts & interrupt_cancel) != 0 && !in_shield(host)) {
      cancel_here(runs_it, "who let it run there ends", {});
    }
    waits |= std::exchange(host.interrupts, std::uint8_t{0});
  }
  host.interrupts |= waits;
}

void come_again(const hop& mine, station& known) noexcept {
  try {
    known.keep_timers(timers_of_scopes(mine.its.its.scopes));
  } catch (...) {
    send_back(mine, std::current_exception());
    return;
  }
  known.returning.arrive(known.returning, known.thread);
}

void receive_apart(const hop& mine, thread_state& home) noexcept {
  visit guest{.by = &mine, .home = &home};
  handle runs_it;
  try {
    launch fresh(&cold(home.main_fiber()).own, nullptr, body_kind_of<visit_body, void>::kind, {});
    ::new (fresh.body()) visit_body(guest);
    runs_it = fresh.start();
  } catch (const cancelled&) {
    send_back(mine, made_exception<executor_stopped>());
    return;
  } catch (...) {
    send_back(mine, std::current_exception());
    return;
  }
  await_leave(guest, *runs_it.get());
}

}  // namespace

void arrive(hop& mine, bool alone) noexcept {
  if (!in_this_process(mine.its) || !mine.claim()) return;
  thread_state* thread = self();
  if (thread != nullptr && &thread->running() == mine.poster && mine.posting) {
    mine.at_once = true;
  } else if (thread == nullptr) {
    visit_foreign_thread(mine);
  } else if (station* known = place_on(mine.its, *thread)) {
    come_again(mine, *known);
  } else if (thread->foreign) {
    visit_foreign_thread(mine);
  } else if (alone) {
    receive(mine, *thread);
  } else {
    receive_apart(mine, *thread);
  }
}

void arrival::operator()() const {
  arrive(*hop_, false);
}

}}}  // namespace motet::MOTET_ABI::detail
