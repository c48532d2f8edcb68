// SPDX-License-Identifier: MIT
// See detail/arrival.hpp: how an executor's function becomes the place where a fiber goes on.
#include <motet/detail/launch.hpp>
#include <optional>
#include <utility>

#include "foreign_visit.hpp"
#include "journey.hpp"
#include "mailbox.hpp"
#include "visit.hpp"

namespace motet::inline MOTET_ABI::detail {

hop::hop(station& from, const executor& where, bool returns) noexcept
    : its(from.whose),
      to(where),
      poster(&from.block),
      origin(returns || from.origins > 0 ? from : its.home) {
  retain(its);
}

void send_back(const hop& failed, std::exception_ptr why) noexcept {
  failed.its.refused = std::move(why);
  failed.origin.thread.mail().push(failed.origin.returning);
}

/// Nobody has called the function, and now nobody can.
hop::~hop() {
  if (in_this_process(its) && claim()) {
    send_back(*this, std::make_exception_ptr(executor_stopped()));
  }
  release(its);
}

namespace {

/// On a thread that has no runtime.
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

/// Whether the running fiber has nothing that a visitor could take for its own.
bool is_blank(thread_state& thread) noexcept {
  const control_block& fiber = thread.running();
  return !fiber.is_main && fiber.scopes == nullptr && fiber.shields == 0 && thread.could_be_new();
}

/// Who serves the executor goes on when the visitor has left. If it is to end, so is the visit;
/// whatever else pends is thrown at it later.
void await_leave(visit& guest, control_block& runs_it) noexcept {
  thread_state& home = *guest.home;
  for (bool heard = false; !guest.over; heard = true) {
    wait_record wait("a fiber that visits it");
    wait.interruptible = !heard;
    guest.waiting = &wait;
    home.park(wait);
    guest.waiting = nullptr;
    if (!heard && (home.running().interrupts & interrupt_cancel) != 0) {
      home.cancel(runs_it, "who let it run there ends", {});
    }
  }
}

void receive_apart(const hop& mine, thread_state& home) noexcept {
  visit guest{.by = &mine, .home = &home};
  handle runs_it;
  try {
    launch fresh(&cold(home.main_fiber()).own, nullptr, body_kind_of<visit_body, void>::kind, {});
    ::new (fresh.body()) visit_body(guest);
    runs_it = fresh.start();
  } catch (const cancelled&) {
    send_back(mine, std::make_exception_ptr(executor_stopped()));
    return;
  } catch (...) {
    send_back(mine, std::current_exception());
    return;
  }
  await_leave(guest, *runs_it.get());
}

}  // namespace

void arrival::operator()() const {
  hop& mine = *hop_;
  if (!in_this_process(mine.its) || !mine.claim()) return;
  thread_state* thread = self();
  if (thread == nullptr) {
    visit_foreign_thread(mine);
  } else if (&thread->running() == mine.poster && mine.posting) {
    mine.at_once = true;
  } else if (station* known = place_on(mine.its, *thread)) {
    known->returning.arrive(known->returning, *thread);
  } else if (thread->foreign() || is_blank(*thread)) {
    receive(mine, *thread);
  } else {
    receive_apart(mine, *thread);
  }
}

}  // namespace motet::inline MOTET_ABI::detail
