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
void merge(forwarded& into, forwarded&& more) noexcept {
  if (into.raised == nullptr) std::swap(into.raised, more.raised);
  if (more.raised != nullptr) {
    thread_state& thread = *self();
    thread.cleaner.destroy_later(
        value_slot::holding(undelivered(thread.settings(), std::move(more.raised))));
  }
  into.failures.splice(into.failures.end(), more.failures);
  if (more.token_given) std::swap(into.token, more.token);
  into.token_given = into.token_given || more.token_given;
  into.stops = into.stops || more.stops;
  if (more.end.asked) into.end = more.end;
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
void look(journey& trip, thread_state& here) noexcept {
  forwarded news;
  residence* at = nullptr;
  residence* sender = nullptr;
  {
    const std::lock_guard in(trip.sharing);
    trip.nudged = false;
    if (trip.at != nullptr && &trip.at->thread == &here) {
      at = trip.at;
      news = std::exchange(trip.news, {});
    } else if (trip.at == nullptr && trip.sender != nullptr && &trip.sender->thread == &here) {
      sender = trip.sender;
    } else if (trip.at == nullptr || any(trip.news)) {
      nudge(trip);
    }
  }
  if (at != nullptr) at->apply(std::move(news));
  if (sender != nullptr) sender->look();
  release(trip);
}

}  // namespace

void nudge(journey& trip) noexcept {
  residence* place = trip.at != nullptr ? trip.at : trip.sender;
  if (trip.nudged || place == nullptr) return;
  trip.nudge.trip = &trip;
  trip.nudge.handle_post = [](post& item, thread_state& here) noexcept {
    look(*static_cast<journey::nudge_post&>(item).trip, here);
  };
  trip.nudged = place->thread.mail().push(trip.nudge);
  if (trip.nudged) retain(trip);
}

void forward(journey& to, forwarded&& news) noexcept {
  if (!any(news)) return;
  const bool urgent = interrupts(news);
  race_point();
  const std::lock_guard in(to.sharing);
  merge(to.news, std::move(news));
  if (to.at == nullptr && !urgent) return;
  if (to.at == nullptr) to.wanted = true;
  nudge(to);
}

void residence::apply(forwarded&& news) noexcept {
  if (news.end.asked) {
    if (!trip.end.asked) trip.end = news.end;
    trip.end.escalated = trip.end.escalated || news.end.escalated;
    lend_end();
    interrupt_fiber(block, interrupt_cancel);
  }
  if (news.stops) end_stopped_scopes(block);
  forwarded later;
  if (news.raised != nullptr && !raise_here(block, news.raised)) later.raised = news.raised;
  later.failures = std::move(news.failures);
  if (!later.failures.empty() && raise_here(block, later.failures.front())) {
    trip.raised_failure = std::move(later.failures.front());
    later.failures.pop_front();
  }
  if (news.token_given) {
    give_token(block, std::move(news.token));
    thread.cleaner.destroy_later(std::move(news.token));
  }
  const std::lock_guard in(trip.sharing);
  merge(trip.news, std::move(later));
}

void forward_stops(journey& trip) noexcept {
  forwarded news;
  news.stops = true;
  forward(trip, std::move(news));
}

/// The result that stop() gave takes its place when the fiber is at home again.
void forward_result(journey& trip, value_slot&& value) noexcept {
  const std::lock_guard in(trip.sharing);
  trip.result = std::move(value);
}

}}}  // namespace motet::MOTET_ABI::detail
