// SPDX-License-Identifier: MIT
// See travel/journey.hpp: how a fiber leaves a thread for an executor, and how it comes back.
#include "travel/journey.hpp"

#include <cstdlib>
#include <motet/cancel.hpp>
#include <motet/executor.hpp>
#include <stdexcept>
#include <utility>

#include "failures/unhandled.hpp"
#include "heart/hooks.hpp"
#include "heart/mail/mailbox.hpp"
#include "life/family.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

void retain(journey& kept) noexcept {
  kept.references.fetch_add(1, std::memory_order_relaxed);
}

void release(journey& used) noexcept {
  if (used.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &used;
}

/// From now on the journey does not lead to the fiber's block, which goes away.
journey_owner::~journey_owner() {
  if (its == nullptr) return;
  if (in_this_process(*its)) {
    const std::lock_guard in(its->sharing);
    its->at = nullptr;
  }
  release(*its);
}

journey::journey(control_block& traveller) noexcept
    : fiber(traveller), home(*this, home_of(traveller), traveller) {}

station* place_on(journey& its, const thread_state& thread) noexcept {
  const std::lock_guard in(its.sharing);
  station* each = its.stations;
  while (each != nullptr && &each->thread != &thread) each = each->next;
  return each;
}

bool has_place_in(const journey& its, const pool_state* pool) noexcept {
  const std::lock_guard in(its.sharing);
  const station* each = its.stations;
  while (each != nullptr && each->thread.pool != pool) each = each->next;
  return each != nullptr;
}

namespace {

/// Leaves the thread, for where the journey says. A pointer to this thread that was read before is
/// of another thread afterwards.
void depart(journey& its) noexcept {
  station& from = *its.at;
  its.where.watched = from.block.where.watched;
  switch_context(its.where, from.waiting);
  if (its.home_closes) its.home.close();
}

}  // namespace

bool is_away(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && part->travels.its != nullptr && part->travels.its->away;
}

namespace {

/// Throws: std::logic_error if the fiber could not come home again.
void check_comes_home(const control_block& fiber) {
  if (fiber.ending) throw std::logic_error("a fiber that ends does so at home");
  if (fiber.is_main && !home_of(fiber).calls_main) {
    throw std::logic_error("what has called a main fiber cannot go along: take a portal, or run()");
  }
}

/// Whether the fiber's thread takes no posts any more, so that the fiber could not come back.
bool takes_no_mail(const control_block& fiber) noexcept {
  const std::lock_guard in(fiber.mail->lock());
  return fiber.mail->closed();
}

/// A journey that was made in the parent process is replaced: its other threads are not here.
journey& journey_of(control_block& fiber) {
  journey*& made = cold(fiber).travels.its;
  if (made != nullptr && !in_this_process(*made)) {
    if (&self()->running() != &fiber) throw std::logic_error("a fiber that has forked abroad");
    release(*std::exchange(made, nullptr));
  }
  if (made == nullptr) made = new journey(fiber);
  return *made;
}

/// Opens the home station, and closes it again if the fiber does not leave home after all.
class opened_home {
 public:
  explicit opened_home(journey& its) : its_(its) {
    if (!its.home_open) its.home.open();
  }
  opened_home(const opened_home&) = delete;
  opened_home& operator=(const opened_home&) = delete;
  ~opened_home() {
    if (its_.home_open && its_.at->is_home() && its_.home.ends_here()) its_.home.close();
  }

 private:
  journey& its_;
};

/// Leaves for an executor.
/// Returns: whether the traveller has arrived; false: it was called back.
/// Throws: the exception by which the executor has refused it.
bool leave_for(journey& its, const executor& to, bool returns) {
  station& from = *its.at;
  auto how = std::make_shared<hop>(from, to, returns);
  const opened_home open(its);
  how->has_room = executor_access::take_room(to, its);
  if (returns) ++from.portals;
  its.leaving = std::move(how);
  depart(its);
  const bool called_back = std::exchange(its.called_back, false);
  if (!called_back && its.refused == nullptr) return true;
  if (returns) --from.portals;
  if (its.refused != nullptr) std::rethrow_exception(std::exchange(its.refused, nullptr));
  return false;
}

/// Returns: the station that the fiber has left; null if it was at the executor already.
station* go(const executor& to, bool returns) {
  thread_state& thread = here();
  thread.deliver();
  if (executor_access::is_here(to)) return nullptr;
  const cold_part* part = cold_if_any(thread.running());
  if (part != nullptr && part->sends) {
    throw std::logic_error("an executor's post() cannot go anywhere itself");
  }
  control_block& fiber = identity_of(thread.running());
  if (!returns) check_comes_home(fiber);
  if (fiber.ending && takes_no_mail(fiber)) throw executor_stopped();
  journey& its = journey_of(fiber);
  station& from = *its.at;
  if (from.served && executor_access::same(*from.served, to)) return nullptr;
  if (returns && from.must_be_left()) {
    throw std::logic_error("a portal cannot lead back to a foreign executor");
  }
  while (!leave_for(its, to, returns)) self()->deliver();
  return &from;
}

void come_back(station& origin) noexcept {
  journey& its = origin.whose;
  if (its.at != &origin && in_this_process(its)) {
    its.back_to = &origin;
    depart(its);
  }
  --origin.portals;
}

bool has_places(journey& its) noexcept {
  const std::lock_guard in(its.sharing);
  return its.stations != &its.home;
}

/// Returns: a station other than the present one that the traveller has left something at; if there
///          is none, home.
station& last_place_of(journey& its) noexcept {
  const std::lock_guard in(its.sharing);
  station* each = its.stations;
  while (each == its.at && !each->is_home()) each = each->next;
  each->expected = true;
  return *each;
}

}  // namespace

/// Goes to the traveller's station whose block is `owner`, for example to end a group there.
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

/// Ends the traveller's stations one after another; home is the last.
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
      its.at->portals = 0;
      end_children(its.at->block);
      its.at->pass_on();
    }
    its.back_to = &last_place_of(its);
    depart(its);
  }
  if (its.home_open) its.home.close();  // the last other station ended without the traveller
  --fiber.shields;
}

namespace {

/// Returns: null if the fiber has never been away, or was in another process.
journey* travels_of(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  journey* its = part == nullptr ? nullptr : part->travels.its;
  return its != nullptr && in_this_process(*its) ? its : nullptr;
}

}  // namespace

/// A child's failure that was raised in the traveller, but not thrown there yet, counts as well.
std::exception_ptr failure_while_away(control_block& fiber) noexcept {
  journey* travelled = travels_of(fiber);
  if (travelled == nullptr) return nullptr;
  const std::lock_guard in(travelled->sharing);
  if (!travelled->left.failures.empty()) {
    std::exception_ptr first = std::move(travelled->left.failures.front());
    travelled->left.failures.pop_front();
    return first;
  }
  if (travelled->told == nullptr || travelled->told != fiber.raised) return nullptr;
  fiber.raised = nullptr;
  return std::exchange(travelled->told, nullptr);
}

std::exception_ptr raised_too_late(control_block& fiber) noexcept {
  journey* travelled = travels_of(fiber);
  if (travelled == nullptr) return nullptr;
  const std::lock_guard in(travelled->sharing);
  return std::exchange(travelled->left.raised, nullptr);
}

}  // namespace detail

void teleport(executor to) {
  detail::go(to, false);
}

portal::portal(executor to) : origin_(detail::go(to, true)) {}

portal::~portal() {
  if (origin_ != nullptr) detail::come_back(*origin_);
}

}}  // namespace motet::MOTET_ABI
