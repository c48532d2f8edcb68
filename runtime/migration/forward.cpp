// SPDX-License-Identifier: MIT
// How requests to a traveller, which arrive at its home, and failures of its children reach it:
// they are stored in the journey, and a post makes the traveller's thread look. While the traveller
// is in transit, the next residence finds them.
#include <motet/detail/base/value_slot.hpp>
#include <mutex>
#include <utility>

#include "cancellation/interrupt.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/mail/mailbox.hpp"
#include "migration/journey.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The first raised exception and the last token stand, as with a fiber that is at home; the
/// children's failures are all kept. A second raised exception goes to on_unhandled, for the
/// raise() that gave it has returned true.
void merge(forwarded& target, forwarded&& news) noexcept {
  if (target.raised == nullptr) std::swap(target.raised, news.raised);
  if (news.raised != nullptr) {
    thread_state& thread = *self();
    thread.cleaner.destroy_later(
        value_slot::holding(undelivered(thread.settings(), std::move(news.raised))));
  }
  target.failures.splice(target.failures.end(), news.failures);
  if (news.token_given) std::swap(target.token, news.token);
  target.token_given = target.token_given || news.token_given;
  target.stops = target.stops || news.stops;
  if (news.end.asked) target.end = news.end;
}

namespace {

/// A token can wait until the traveller arrives; an interruption must reach it at once.
bool interrupts(const forwarded& news) noexcept {
  return news.raised != nullptr || !news.failures.empty() || news.stops || news.end.asked;
}

bool any(const forwarded& news) noexcept {
  return news.token_given || interrupts(news);
}

/// Runs on the thread that was nudged, which had the traveller then, or could call it back.
void look(journey& trip, thread_state& thread) noexcept {
  forwarded news;
  residence* target = nullptr;
  residence* sender = nullptr;
  {
    mailbox::deferred_wake wake;
    const std::lock_guard lock(trip.sharing);
    trip.nudged = false;
    if (trip.location != nullptr && &trip.location->thread == &thread) {
      target = trip.location;
      news = std::exchange(trip.news, {});
    } else if (trip.location == nullptr && trip.sender != nullptr &&
               &trip.sender->thread == &thread) {
      sender = trip.sender;
    } else if (trip.location == nullptr || any(trip.news)) {
      nudge(trip, wake);
    }
  }
  if (target != nullptr) target->apply(std::move(news));
  if (sender != nullptr) sender->look();
  release(trip);
}

}  // namespace

void nudge(journey& trip, mailbox::deferred_wake& wake) noexcept {
  residence* target = trip.location != nullptr ? trip.location : trip.sender;
  if (trip.nudged || target == nullptr) return;
  trip.nudge.trip = &trip;
  trip.nudge.handle_post = [](post& item, thread_state& thread) noexcept {
    look(*static_cast<journey::nudge_post&>(item).trip, thread);
  };
  trip.nudged = wake.push(target->thread.mail(), trip.nudge);
  if (trip.nudged) retain(trip);
}

void forward(journey& trip, forwarded&& news) noexcept {
  if (!any(news)) return;
  const bool urgent = interrupts(news);
  race_point();
  mailbox::deferred_wake wake;
  const std::lock_guard lock(trip.sharing);
  merge(trip.news, std::move(news));
  if (trip.location == nullptr && !urgent) return;
  if (trip.location == nullptr) trip.wanted = true;
  nudge(trip, wake);
}

void residence::apply(forwarded&& news) noexcept {
  if (news.end.asked) {
    if (!trip.end.asked) trip.end = news.end;
    trip.end.escalated = trip.end.escalated || news.end.escalated;
    lend_end();
    interrupt_fiber(block, interrupt_cancel);
  }
  if (news.stops) end_stopped_scopes(block);
  forwarded remainder;
  if (news.raised != nullptr && !raise_here(block, news.raised)) remainder.raised = news.raised;
  remainder.failures = std::move(news.failures);
  if (!remainder.failures.empty() && raise_here(block, remainder.failures.front())) {
    trip.raised_failure = std::move(remainder.failures.front());
    remainder.failures.pop_front();
  }
  if (news.token_given) {
    give_token(block, std::move(news.token));
    thread.cleaner.destroy_later(std::move(news.token));
  }
  const std::lock_guard lock(trip.sharing);
  merge(trip.news, std::move(remainder));
}

void forward_stops(journey& trip) noexcept {
  forwarded news;
  news.stops = true;
  forward(trip, std::move(news));
}

/// The result that stop() gave takes its place when the fiber is at home again.
void forward_result(journey& trip, value_slot&& value) noexcept {
  const std::lock_guard lock(trip.sharing);
  trip.result = std::move(value);
}

}}}  // namespace motet::MOTET_ABI::detail
