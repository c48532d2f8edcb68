// SPDX-License-Identifier: MIT
// See migration/journey.hpp: how a fiber leaves a thread for an executor, and how it comes back.
#include "migration/journey.hpp"

#include <cstdlib>
#include <motet/threads/portal.hpp>
#include <stdexcept>
#include <utility>

#include "core/hooks.hpp"
#include "core/mail/mailbox.hpp"
#include "fibers/family.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

void retain(journey& trip) noexcept {
  trip.references.fetch_add(1, std::memory_order_relaxed);
}

void release(journey& trip) noexcept {
  if (trip.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &trip;
}

void dispose_journey(journey& trip) noexcept {
  if (in_this_process(trip)) {
    const std::lock_guard lock(trip.sharing);
    trip.location = nullptr;
  }
  release(trip);
}

journey::journey(control_block& traveller) noexcept
    : fiber(traveller), home(*this, home_of(traveller), traveller) {}

residence* residence_on(journey& trip, const thread_state& thread) noexcept {
  const std::lock_guard lock(trip.sharing);
  residence* entry = trip.residences;
  while (entry != nullptr && &entry->thread != &thread) entry = entry->next;
  return entry;
}

bool has_residence_in(const journey& trip, const pool_state* pool) noexcept {
  const std::lock_guard lock(trip.sharing);
  const residence* entry = trip.residences;
  while (entry != nullptr && entry->thread.pool != pool) entry = entry->next;
  return entry != nullptr;
}

namespace {

/// Leaves the thread for the journey's destination. A pointer to this thread that was read before
/// is stale afterwards.
void depart(journey& trip) noexcept {
  residence& origin = *trip.location;
  origin.thread.check_may_switch();
  trip.saved_context.shadow = origin.block.resume_context.shadow;
  switch_context(trip.saved_context, origin.own_context);
  if (trip.home_stage == journey::home_state::closing) trip.home.close();
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
bool refuses_posts(const control_block& fiber) noexcept {
  const std::lock_guard lock(fiber.mail->lock());
  return fiber.mail->closed();
}

/// Replaces a journey made in the parent process, whose other threads do not exist here.
journey& journey_of(control_block& fiber) {
  journey*& trip = cold(fiber).travels.trip;
  if (trip != nullptr && !in_this_process(*trip)) {
    if (&self()->running() != &fiber)
      throw std::logic_error("teleport(): the fiber has forked away from its home");
    release(*std::exchange(trip, nullptr));
  }
  if (trip == nullptr) trip = new journey(fiber);
  return *trip;
}

/// Opens the home residence, and closes it again if the fiber does not leave home after all.
class opened_home {
 public:
  explicit opened_home(journey& trip) : trip_(trip) {
    if (trip.home_stage == journey::home_state::closed) trip.home.open();
  }
  opened_home(const opened_home&) = delete;
  opened_home& operator=(const opened_home&) = delete;
  ~opened_home() {
    const bool is_open = trip_.home_stage != journey::home_state::closed;
    if (is_open && trip_.location->is_home() && trip_.home.ends_here()) trip_.home.close();
  }

 private:
  journey& trip_;
};

/// Leaves for an executor.
/// Returns: whether the traveller has arrived; false if it was called back.
/// Throws: the exception with which the executor has refused it.
bool leave_for(journey& trip, const executor& target, bool returns) {
  residence& origin = *trip.location;
  auto attempt = std::make_shared<migration_attempt>(origin, target, returns);
  const opened_home home_guard(trip);
  attempt->has_slot = executor_access::reserve_slot(target, trip);
  if (returns) ++origin.portals;
  trip.departure = std::move(attempt);
  depart(trip);
  const bool called_back = std::exchange(trip.called_back, false);
  if (!called_back && trip.refusal == nullptr) return true;
  if (returns) --origin.portals;
  if (trip.refusal != nullptr) std::rethrow_exception(std::exchange(trip.refusal, nullptr));
  return false;
}

/// Returns: the residence that the fiber has left; null if it was at the executor already.
residence* go(const executor& target, bool returns) {
  thread_state& thread = here();
  thread.deliver();
  if (executor_access::is_here(target)) return nullptr;
  const cold_part* part = cold_if_any(thread.running());
  if (part != nullptr && part->sends) {
    throw std::logic_error("teleport(): called in an executor's post()");
  }
  control_block& fiber = traveller_of(thread.running());
  if (!returns) check_comes_home(fiber);
  if (fiber.ending && refuses_posts(fiber)) throw executor_stopped();
  journey& trip = journey_of(fiber);
  residence& origin = *trip.location;
  if (origin.host_executor && executor_access::same(*origin.host_executor, target)) return nullptr;
  if (returns && origin.must_be_left()) {
    throw std::logic_error("portal: it could not return to this foreign thread");
  }
  while (!leave_for(trip, target, returns)) self()->deliver();
  return &origin;
}

void come_back(residence& origin) noexcept {
  journey& trip = origin.trip;
  if (trip.location != &origin && in_this_process(trip)) {
    trip.back_to = &origin;
    depart(trip);
  }
  --origin.portals;
}

bool has_residences(journey& trip) noexcept {
  const std::lock_guard lock(trip.sharing);
  return trip.residences != &trip.home;
}

/// Returns: another residence than the present one where the traveller has left children or
///          portals; if there is none, home.
residence& last_residence_of(journey& trip) noexcept {
  const std::lock_guard lock(trip.sharing);
  residence* entry = trip.residences;
  while (entry == trip.location && !entry->is_home()) entry = entry->next;
  entry->expected = true;
  return *entry;
}

}  // namespace

/// Goes to the traveller's residence whose block is `owner`, for example to end a group there.
void go_to(journey& trip, const control_block& owner) noexcept {
  {
    const std::lock_guard lock(trip.sharing);
    residence* entry = trip.residences;
    while (entry != nullptr && &entry->block != &owner) entry = entry->next;
    if (entry == nullptr) return;
    trip.back_to = entry;
  }
  depart(trip);
}

/// Ends the traveller's residences one after another; home is the last.
void end_journey(control_block& fiber) noexcept {
  journey& trip = *journey_of_any(fiber);
  if (!in_this_process(trip)) {
    if (&self()->running() == &fiber) return;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): a forked child has one thread
    std::exit(std::uncaught_exceptions() > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
  }
  ++self()->running().shields;
  while (has_residences(trip)) {
    if (&self()->running() != &fiber) {
      trip.location->portals = 0;
      end_children(trip.location->block);
      trip.location->pass_on();
    }
    trip.back_to = &last_residence_of(trip);
    depart(trip);
  }
  // The last other residence ended without the traveller.
  if (trip.home_stage != journey::home_state::closed) trip.home.close();
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
  journey* trip = travels_of(fiber);
  if (trip == nullptr) return nullptr;
  const std::lock_guard lock(trip->sharing);
  if (!trip->news.failures.empty()) {
    std::exception_ptr first = std::move(trip->news.failures.front());
    trip->news.failures.pop_front();
    return first;
  }
  if (trip->raised_failure == nullptr || trip->raised_failure != fiber.raised) return nullptr;
  fiber.raised = nullptr;
  return std::exchange(trip->raised_failure, nullptr);
}

std::exception_ptr raised_too_late(control_block& fiber) noexcept {
  journey* trip = travels_of(fiber);
  if (trip == nullptr) return nullptr;
  const std::lock_guard lock(trip->sharing);
  return std::exchange(trip->news.raised, nullptr);
}

}  // namespace detail

void teleport(executor target) {
  detail::go(target, false);
}

portal::portal(executor target) : origin_(detail::go(target, true)) {}

portal::~portal() {
  if (origin_ != nullptr) detail::come_back(*origin_);
}

}}  // namespace motet::MOTET_ABI
