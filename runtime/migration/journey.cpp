// SPDX-License-Identifier: MIT
// See migration/journey.hpp: how a fiber leaves a thread for an executor, and how it comes back.
#include "migration/journey.hpp"

#include <cstdlib>
#include <motet/cancel.hpp>
#include <motet/executor.hpp>
#include <stdexcept>
#include <utility>

#include "core/hooks.hpp"
#include "core/mail/mailbox.hpp"
#include "fibers/family.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

void retain(journey& kept) noexcept {
  kept.references.fetch_add(1, std::memory_order_relaxed);
}

void release(journey& used) noexcept {
  if (used.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &used;
}

void dispose_journey(journey& trip) noexcept {
  if (in_this_process(trip)) {
    const std::lock_guard in(trip.sharing);
    trip.at = nullptr;
  }
  release(trip);
}

journey::journey(control_block& traveller) noexcept
    : fiber(traveller), home(*this, home_of(traveller), traveller) {}

residence* residence_on(journey& trip, const thread_state& thread) noexcept {
  const std::lock_guard in(trip.sharing);
  residence* each = trip.residences;
  while (each != nullptr && &each->thread != &thread) each = each->next;
  return each;
}

bool has_residence_in(const journey& trip, const pool_state* pool) noexcept {
  const std::lock_guard in(trip.sharing);
  const residence* each = trip.residences;
  while (each != nullptr && each->thread.pool != pool) each = each->next;
  return each != nullptr;
}

namespace {

/// Leaves the thread for the journey's destination. A pointer to this thread that was read before
/// is stale afterwards.
void depart(journey& trip) noexcept {
  residence& from = *trip.at;
  from.thread.check_may_leave();
  trip.where.watched = from.block.resume_context.watched;
  switch_context(trip.where, from.waiting);
  if (trip.home_closes) trip.home.close();
}

/// Throws: std::logic_error if the fiber could not come home again.
void check_comes_home(const control_block& fiber) {
  if (fiber.ending) throw std::logic_error("teleport(): the fiber is ending");
  if (fiber.is_main && !home_of(fiber).calls_main) {
    throw std::logic_error(
        "teleport(): an implicit main fiber cannot migrate; use a portal, or run()");
  }
}

/// Whether the fiber's thread takes no posts any more, so that the fiber could not come back.
bool takes_no_mail(const control_block& fiber) noexcept {
  const std::lock_guard in(fiber.mail->lock());
  return fiber.mail->closed();
}

/// Replaces a journey made in the parent process, whose other threads do not exist here.
journey& journey_of(control_block& fiber) {
  journey*& made = cold(fiber).travels.trip;
  if (made != nullptr && !in_this_process(*made)) {
    if (&self()->running() != &fiber)
      throw std::logic_error("teleport(): the fiber has forked away from its home");
    release(*std::exchange(made, nullptr));
  }
  if (made == nullptr) made = new journey(fiber);
  return *made;
}

/// Opens the home residence, and closes it again if the fiber does not leave home after all.
class opened_home {
 public:
  explicit opened_home(journey& trip) : trip_(trip) {
    if (!trip.home_open) trip.home.open();
  }
  opened_home(const opened_home&) = delete;
  opened_home& operator=(const opened_home&) = delete;
  ~opened_home() {
    if (trip_.home_open && trip_.at->is_home() && trip_.home.ends_here()) trip_.home.close();
  }

 private:
  journey& trip_;
};

/// Leaves for an executor.
/// Returns: whether the traveller has arrived; false if it was called back.
/// Throws: the exception with which the executor has refused it.
bool leave_for(journey& trip, const executor& to, bool returns) {
  residence& from = *trip.at;
  auto how = std::make_shared<migration_attempt>(from, to, returns);
  const opened_home open(trip);
  how->has_room = executor_access::take_room(to, trip);
  if (returns) ++from.portals;
  trip.leaving = std::move(how);
  depart(trip);
  const bool called_back = std::exchange(trip.called_back, false);
  if (!called_back && trip.refused == nullptr) return true;
  if (returns) --from.portals;
  if (trip.refused != nullptr) std::rethrow_exception(std::exchange(trip.refused, nullptr));
  return false;
}

/// Returns: the residence that the fiber has left; null if it was at the executor already.
residence* go(const executor& to, bool returns) {
  thread_state& thread = here();
  thread.deliver();
  if (executor_access::is_here(to)) return nullptr;
  const cold_part* part = cold_if_any(thread.running());
  if (part != nullptr && part->sends) {
    throw std::logic_error("teleport(): called in an executor's post()");
  }
  control_block& fiber = traveller_of(thread.running());
  if (!returns) check_comes_home(fiber);
  if (fiber.ending && takes_no_mail(fiber)) throw executor_stopped();
  journey& trip = journey_of(fiber);
  residence& from = *trip.at;
  if (from.served && executor_access::same(*from.served, to)) return nullptr;
  if (returns && from.must_be_left()) {
    throw std::logic_error("portal: it could not return to this foreign thread");
  }
  while (!leave_for(trip, to, returns)) self()->deliver();
  return &from;
}

void come_back(residence& origin) noexcept {
  journey& trip = origin.trip;
  if (trip.at != &origin && in_this_process(trip)) {
    trip.back_to = &origin;
    depart(trip);
  }
  --origin.portals;
}

bool has_residences(journey& trip) noexcept {
  const std::lock_guard in(trip.sharing);
  return trip.residences != &trip.home;
}

/// Returns: another residence than the present one where the traveller has left children or
///          portals; if there is none, home.
residence& last_residence_of(journey& trip) noexcept {
  const std::lock_guard in(trip.sharing);
  residence* each = trip.residences;
  while (each == trip.at && !each->is_home()) each = each->next;
  each->expected = true;
  return *each;
}

}  // namespace

/// Goes to the traveller's residence whose block is `owner`, for example to end a group there.
void go_to(journey& trip, const control_block& owner) noexcept {
  {
    const std::lock_guard in(trip.sharing);
    residence* each = trip.residences;
    while (each != nullptr && &each->block != &owner) each = each->next;
    if (each == nullptr) return;
    trip.back_to = each;
  }
  depart(trip);
}

/// Ends the traveller's residences one after another; home is the last.
void end_journey(control_block& fiber) noexcept {
  journey& trip = *journey_of_any(fiber);
  if (!in_this_process(trip)) {
    if (&self()->running() == &fiber) return;
    std::exit(std::uncaught_exceptions() > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
  }
  ++self()->running().shields;
  while (has_residences(trip)) {
    if (&self()->running() != &fiber) {
      trip.at->portals = 0;
      end_children(trip.at->block);
      trip.at->pass_on();
    }
    trip.back_to = &last_residence_of(trip);
    depart(trip);
  }
  if (trip.home_open) trip.home.close();  // the last other residence ended without the traveller
  --fiber.shields;
}

namespace {

/// Returns: null if the fiber has never been away, or was in another process.
journey* travels_of(const control_block& fiber) noexcept {
  journey* trip = journey_of_any(fiber);
  return trip != nullptr && in_this_process(*trip) ? trip : nullptr;
}

}  // namespace

/// A child's failure that was raised in the traveller, but not thrown there yet, counts as well.
std::exception_ptr failure_while_away(control_block& fiber) noexcept {
  journey* travelled = travels_of(fiber);
  if (travelled == nullptr) return nullptr;
  const std::lock_guard in(travelled->sharing);
  if (!travelled->news.failures.empty()) {
    std::exception_ptr first = std::move(travelled->news.failures.front());
    travelled->news.failures.pop_front();
    return first;
  }
  if (travelled->raised_failure == nullptr || travelled->raised_failure != fiber.raised)
    return nullptr;
  fiber.raised = nullptr;
  return std::exchange(travelled->raised_failure, nullptr);
}

std::exception_ptr raised_too_late(control_block& fiber) noexcept {
  journey* travelled = travels_of(fiber);
  if (travelled == nullptr) return nullptr;
  const std::lock_guard in(travelled->sharing);
  return std::exchange(travelled->news.raised, nullptr);
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
