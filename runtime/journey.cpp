// SPDX-License-Identifier: MIT
// See journey.hpp: how a fiber leaves a thread for an executor, and how it comes back.
#include "journey.hpp"

#include <cstdlib>
#include <motet/cancel.hpp>
#include <optional>
#include <utility>

#include "foreign_visit.hpp"
#include "mailbox.hpp"
#include "thread_link.hpp"
#include "traveller.hpp"
#include "unhandled.hpp"

namespace motet::inline MOTET_ABI {

namespace detail {

void retain(journey& kept) noexcept {
  kept.references.fetch_add(1, std::memory_order_relaxed);
}

void release(journey& used) noexcept {
  if (used.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &used;
}

journey_keeper::~journey_keeper() {
  if (its != nullptr) release(*its);
}

journey::journey(control_block& traveller) noexcept
    : fiber(traveller), home(*this, home_of(traveller), traveller) {}

hop::hop(station& from, const executor& where) noexcept
    : its(from.whose),
      number(from.last_hop),
      origin(from.origins > 0 ? from : its.home),
      to(where),
      poster(&from.block) {
  retain(its);
}

/// Nobody has called the function, and now nobody can.
hop::~hop() {
  if (claim()) {
    its.refused = std::make_exception_ptr(executor_stopped());
    origin.thread.mail().push(origin.returning);
  }
  release(its);
}

namespace {

station* place_on(journey& its, const thread_state& thread) noexcept {
  const std::lock_guard in(its.sharing);
  station* each = its.stations;
  while (each != nullptr && &each->thread != &thread) each = each->next;
  return each;
}

/// A forked child has none of the other threads.
bool in_this_process(const journey& its) noexcept {
  return its.made_in == process_generation.load(std::memory_order_relaxed);
}

/// Leaves the thread, for where the journey says. Whatever is read of a thread before is of another
/// one afterwards.
void depart(journey& its) noexcept {
  station& from = *its.at;
  its.where.watched = from.block.where.watched;
  switch_context(its.where, from.waiting);
  if (its.home_closes) its.home.close();
}

}  // namespace

/// It could not go on where it wanted to.
void send_home(journey& its, std::exception_ptr why) noexcept {
  its.refused = std::move(why);
  its.home.thread.mail().push(its.home.returning);
}

namespace {

/// On a thread that has no runtime.
void visit(const hop& mine) noexcept {
  std::optional<foreign_visit> visited;
  try {
    visited.emplace();
  } catch (...) {
    send_home(mine.its, std::current_exception());
    return;
  }
  receive(mine, *self());
}

}  // namespace

void arrival::operator()() const {
  hop& mine = *hop_;
  if (!mine.claim()) return;
  thread_state* thread = self();
  if (thread == nullptr) {
    visit(mine);
  } else if (&thread->running() == mine.poster && mine.posting) {
    mine.at_once = true;
  } else if (station* known = place_on(mine.its, *thread)) {
    known->returning.arrive(known->returning, *thread);
  } else {
    receive(mine, *thread);
  }
}

bool is_away(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && part->travels.its != nullptr && part->travels.its->away;
}

namespace {

/// Returns: where it has come from; null if it was there already.
station* go(const executor& to, bool returns) {
  thread_state* thread = &here();
  thread->deliver();
  if (executor_access::is_here(to)) return nullptr;
  control_block& fiber = identity_of(thread->running());
  if (fiber.ending && !returns) throw std::logic_error("a fiber that ends does so at home");
  journey*& made = cold(fiber).travels.its;
  if (made == nullptr) made = new journey(fiber);
  journey& its = *made;
  const auto& foreign = its.at->foreign;
  if (foreign && executor_access::same(*foreign, to)) return nullptr;
  if (thread->foreign() && returns) {
    throw std::logic_error("a portal cannot lead back to a foreign executor");
  }
  for (;; thread->deliver()) {
    if (!its.home_open) its.home.open();
    station& from = *its.at;
    if (returns) ++from.origins;
    its.to = &to;
    depart(its);
    const bool called_back = std::exchange(its.called_back, false);
    if (!called_back && its.refused == nullptr) return &from;
    if (returns) --from.origins;
    if (its.refused != nullptr) std::rethrow_exception(std::exchange(its.refused, nullptr));
    thread = self();
  }
}

void come_back(station& origin) noexcept {
  journey& its = origin.whose;
  if (its.at != &origin && in_this_process(its)) {
    its.back_to = &origin;
    depart(its);
  }
  --origin.origins;
}

/// What its children there have failed with is the fiber's, if it has no failure of its own.
void collect_failures(journey& its) noexcept {
  thread_state& here = *self();
  while (control_block* failed = here.take_failure(here.running(), nullptr)) {
    here.refresh_failures(here.running());
    if (its.failure == nullptr) {
      its.failure = failed->error;
    } else {
      tell_unhandled(here.settings(), failed->error);
    }
    here.release(*failed);
  }
}

bool has_places(journey& its) noexcept {
  const std::lock_guard in(its.sharing);
  return its.stations != &its.home;
}

/// Returns: where it has left children, other than where it is; else home.
station& last_place_of(journey& its) noexcept {
  const std::lock_guard in(its.sharing);
  station* each = its.stations;
  while (each == its.at && !each->is_home()) each = each->next;
  each->expected = true;
  return *each;
}

}  // namespace

/// Goes to the thread to which what it has left with `owner` belongs.
void go_to(control_block& owner) noexcept {
  const cold_part* part = cold_if_any(identity_of(self()->running()));
  if (part == nullptr || part->travels.its == nullptr) return;
  journey& its = *part->travels.its;
  {
    const std::lock_guard in(its.sharing);
    station* each = its.stations;
    while (each != nullptr && &each->block != &owner) each = each->next;
    if (each == nullptr) return;
    its.back_to = each;
  }
  depart(its);
}

/// Home is the last of the stations.
void come_home(control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  if (part == nullptr || part->travels.its == nullptr) return;
  journey& its = *part->travels.its;
  if (!in_this_process(its)) {
    if (&self()->running() == &fiber) return;
    std::exit(std::uncaught_exceptions() > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
  }
  ++self()->running().shields;
  while (has_places(its)) {
    if (&self()->running() != &fiber) {
      its.at->origins = 0;
      self()->end_children(its.at->block);
      collect_failures(its);
    }
    its.back_to = &last_place_of(its);
    depart(its);
  }
  --fiber.shields;
}

/// One that was raised in it, but that it was not told of, is its own as well.
std::exception_ptr failure_abroad(control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  if (part == nullptr || part->travels.its == nullptr) return nullptr;
  journey& its = *part->travels.its;
  const std::lock_guard in(its.sharing);
  for (std::exception_ptr* each : {&its.failure, &its.left.failure}) {
    if (*each != nullptr) return std::exchange(*each, nullptr);
  }
  const bool untold = its.told != nullptr && its.told == fiber.raised;
  return untold ? std::exchange(its.told, nullptr) : nullptr;
}

void throw_failure_abroad(control_block& fiber) {
  if (const std::exception_ptr error = failure_abroad(fiber)) std::rethrow_exception(error);
}

bool runs_here(const thread& where) {
  return runs_here(*where.link());
}

bool runs_here(const thread_pool& where) {
  return where.on_own_thread();
}

bool runs_here(const strand& where) noexcept {
  return runs_here(where.pool_->worker(where.worker_));
}

}  // namespace detail

void teleport(executor to) {
  detail::go(to, false);
}

portal::portal(executor to) : origin_(detail::go(to, true)) {}

portal::~portal() {
  if (origin_ != nullptr) detail::come_back(*origin_);
}

}  // namespace motet::inline MOTET_ABI
