// SPDX-License-Identifier: MIT
// What a switchpoint throws, if anything. A cancellation and an ended scope last: they are thrown
// again and again until the body, or the scope, is left.
#include <motet/detail/words/timespan.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "failures/exception_object.hpp"
#include "heart/thread_state.hpp"
#include "words/saturating_time.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// So often in a row a fiber may swallow what ends it before people are told.
constexpr unsigned most_swallowed = 100;

}  // namespace

bool thread_state::in_shield(const control_block& fiber) const noexcept {
  for (const scope_entry* each = fiber.scopes; each != nullptr; each = each->outer_) {
    if (each->kind_ == scope_kind::shields) return true;
  }
  return shelter_of(fiber) > 0;
}

/// Whether the fiber is in a handler of this very interruption, and has not been there for long,
/// from the first switchpoint in it on.
bool thread_state::held(const control_block& fiber, lasting_interruption& about) noexcept {
  if (!about.told || (about.handled && now() >= grace_end(about))) return false;
  void* caught = &fiber == running_ ? live_exceptions_->caught : fiber.caught;
  const bool handles = any_caught(caught, [&](void* object) {
    if (type_of(object) != typeid(cancelled)) return false;
    return interruption::id_of(*static_cast<const cancelled*>(object)) == about.id;
  });
  if (handles && !std::exchange(about.handled, true)) about.handled_since = now();
  return handles && now() < grace_end(about);
}

clock::time_point thread_state::grace_end(const lasting_interruption& about) const noexcept {
  return deadline_after(about.handled_since, timespan(options_.handler_grace).length);
}

/// What an outer one, visible from the scope, silences while a handler is busy with it: everything
/// inside that is older than its telling.
bool thread_state::silenced(const scope& inner, unsigned shelter) noexcept {
  const control_block& fiber = *inner.fiber_;
  const auto silences = [&](lasting_interruption& outer) {
    return inner.about_.id <= outer.scopes_then && held(fiber, outer);
  };
  for (scope_entry* each = inner.outer_; each != nullptr; each = each->outer_) {
    if (each->shelter_ < shelter || each->kind_ == scope_kind::shields) return false;
    if (each->kind_ != scope_kind::ends) continue;
    auto& outer = static_cast<scope&>(*each);
    if (outer.ended_ && silences(outer.about_)) return true;
  }
  return shelter == 0 && (fiber.interrupts & interrupt_cancel) != 0 &&
         silences(cold_if_any(fiber)->cancellation);
}

/// From the inside outwards: the outermost that is not held speaks. A scope can interrupt only what
/// is as sheltered as it was when it was entered: so nothing from outside reaches a destructor, but
/// a time limit within it works.
speaker thread_state::speaker_of(const control_block& fiber) noexcept {
  speaker found;
  cold_part* part = cold_if_any(fiber);
  const unsigned shelter = shelter_of(fiber);
  const bool cancelled_now = (fiber.interrupts & interrupt_cancel) != 0;
  if (cancelled_now && part->insisted && shelter == 0) return {speaks::cancellation, nullptr};
  for (scope_entry* each = fiber.scopes; each != nullptr; each = each->outer_) {
    if (each->shelter_ < shelter || each->kind_ == scope_kind::shields) return found;
    if (each->kind_ != scope_kind::ends) continue;
    auto& entered = static_cast<scope&>(*each);
    if (!entered.ended_ || held(fiber, entered.about_)) continue;
    if (!silenced(entered, shelter)) found = {speaks::scope, &entered};
  }
  if (shelter > 0) return found;
  if (fiber.raised != nullptr) return {speaks::raised, nullptr};
  if (cancelled_now && !held(fiber, part->cancellation)) return {speaks::cancellation, nullptr};
  if ((fiber.interrupts & interrupt_failure) != 0) return {speaks::failure, nullptr};
  return found;
}

bool thread_state::must_throw_now() noexcept {
  return static_cast<bool>(speaker_of(*running_));
}

/// A wait in a handler goes on, and ends with the handler's grace.
bool thread_state::interrupts_wait() noexcept {
  control_block& fiber = *running_;
  if (foreign_ || speaker_of(fiber)) return true;
  for (scope_entry* each = fiber.scopes; each != nullptr; each = each->outer_) {
    if (each->kind_ != scope_kind::ends) continue;
    auto& entered = static_cast<scope&>(*each);
    if (entered.ended_) end_grace_later(entered.alarm_, entered.about_);
  }
  if ((fiber.interrupts & interrupt_cancel) != 0) {
    cold_part& part = cold(fiber);
    part.grace.fiber = &fiber;
    end_grace_later(part.grace, part.cancellation);
  }
  return false;
}

void thread_state::end_grace_later(timer& alarm, const lasting_interruption& about) noexcept {
  if (!about.handled || alarm.armed()) return;
  alarm.due = grace_end(about);  // perhaps by now: then it fires at the next poll
  alarm.fire = [](timer& over) noexcept {
    home_of(*over.fiber).interrupt_fiber(*over.fiber, interrupt_anew);
  };
  arm(alarm);
}

/// Before what lasts is thrown again, every runnable fiber has its turn: a loop that swallows it
/// starves nobody.
void thread_state::let_others_run_before(const lasting_interruption& about) noexcept {
  control_block& fiber = *running_;
  cold_part& part = cold(fiber);
  if (!about.told) {
    part.swallowed = 0;
    return;
  }
  if (++part.swallowed == most_swallowed) tell_of_swallowing(fiber);
  snooze();
}

void thread_state::tell_of_swallowing(const control_block& fiber) noexcept {
  try {
    notice("fiber " + label_of(fiber) + ", spun at " + fiber.site.file + ":" +
           std::to_string(fiber.site.line) + ", has gone on 100 times after being told to end");
  } catch (const std::bad_alloc&) {
    // A notice is no reason to fail.
  }
}

void thread_state::tell(lasting_interruption& about) noexcept {
  if (held(*running_, about)) return;  // spin() throws in a handler, too
  about.told = true;
  about.scopes_then = last_scope_;
}

void thread_state::throw_what_is_pending() {
  control_block& fiber = *running_;
  speaker speaking = speaker_of(fiber);
  if (speaking.what == speaks::scope) {
    let_others_run_before(speaking.which->about_);
    speaking = speaker_of(fiber);
  } else if (speaking.what == speaks::cancellation) {
    let_others_run_before(cold(fiber).cancellation);
    speaking = speaker_of(fiber);
  }
  switch (speaking.what) {
    case speaks::raised:
      fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_raised);
      std::rethrow_exception(std::exchange(fiber.raised, nullptr));
    case speaks::failure:
      throw_failure();
    case speaks::scope: {
      scope& ended = *speaking.which;
      tell(ended.about_);
      announce_up_to(&ended);
      interruption::throw_cancelled(ended.reason_, ended.about_.id, ended.about_.site);
    }
    case speaks::cancellation:
      throw_cancellation();
    case speaks::nobody:
      break;
  }
  check_may_wait();
  throw std::logic_error("a wait was interrupted by nothing");
}

void thread_state::throw_cancellation() {
  lasting_interruption& about = cold(*running_).cancellation;
  tell(about);
  announce_up_to(nullptr);
  interruption::throw_cancelled(running_->cancel_reason, about.id, about.site);
}

void thread_state::throw_failure() {
  control_block& fiber = *running_;
  control_block* failed = take_failure(fiber, nullptr);
  refresh_failures(fiber);
  const std::exception_ptr error = failed->error;
  release(*failed);
  std::rethrow_exception(error);
}

void thread_state::leave_ended_scope(control_block& fiber, const scope& left) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_scope);
  for (const scope_entry* each = left.outer_; each != nullptr; each = each->outer_) {
    if (each->kind_ == scope_kind::ends && static_cast<const scope*>(each)->ended_) {
      fiber.interrupts |= interrupt_scope;
      return;
    }
  }
}

}}}  // namespace motet::MOTET_ABI::detail
