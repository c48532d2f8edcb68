// SPDX-License-Identifier: MIT
// How a fiber is interrupted: by an exception raised in it, its cancellation, a scope that has
// ended, a child that has failed. All are levels or slots of the fiber, so that none can displace
// another, and a wait that is over stays over. What a switchpoint throws is in
// interruption/pending_throw.cpp.
#include <utility>

#include "heart/resume_wait.hpp"
#include "heart/thread_state.hpp"
#include "heart/travel_hooks.hpp"
#include "words/saturating_time.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// An exception takes the place of a token that was given but not yet seen; every other hand-over
/// stands, and the exception waits for the next switchpoint.
bool thread_state::interrupt_fiber(control_block& fiber, interrupt why) noexcept {
  fiber.interrupts |= why;
  wait_record* wait = fiber.wait;
  if (wait == nullptr || !wait->interruptible || !speaker_of(fiber)) return false;
  if (resume(*wait, wake_reason::interrupted)) return true;
  if (why == interrupt_raised && wait->for_token && wait->ended() == wake_reason::handed) {
    wait->end_instead(wake_reason::interrupted);
    drop_later(std::move(cold(fiber).token));
  }
  return false;
}

bool thread_state::raise(control_block& fiber, std::exception_ptr error) noexcept {
  if (fiber.ending || fiber.raised != nullptr) return false;
  fiber.raised = std::move(error);
  interrupt_fiber(fiber, interrupt_raised);
  return true;
}

cancel_result thread_state::cancel(control_block& fiber, const char* reason,
                                   call_site site) noexcept {
  if (fiber.ending) return cancel_result::finished;
  if (fiber.cancel_reason != nullptr) return cancel_result::already;
  fiber.cancel_reason = reason;
  lasting_interruption& about = cold(fiber).cancellation;
  about.id = next_scope();
  about.site = site;
  interrupt_fiber(fiber, interrupt_cancel);
  return cancel_result::accepted;
}

/// Of several graces the one that ends first counts.
cancel_result thread_state::terminate(control_block& fiber, clock::duration grace,
                                      call_site site) noexcept {
  const cancel_result answer = cancel(fiber, "it was terminated", site);
  if (answer == cancel_result::finished) return answer;
  cold_part& part = cold(fiber);
  const clock::time_point due = deadline_after(now(), grace);
  timer& alarm = part.insistence;
  if (part.insisted || (alarm.armed() && alarm.due <= due)) return answer;
  disarm(alarm);
  alarm.due = due;
  alarm.fiber = &fiber;
  alarm.fire = [](timer& due_now) noexcept {
    cold(*due_now.fiber).insisted = true;
    home_of(*due_now.fiber).interrupt_fiber(*due_now.fiber, interrupt_cancel);
  };
  arm(alarm);
  return answer;
}

cancel_result thread_state::give_result(control_block& fiber, const char* reason, call_site site,
                                        value_slot&& value) noexcept {
  const cancel_result answer = cancel(fiber, reason, site);
  if (answer != cancel_result::accepted) return answer;
  if (is_away(fiber)) {
    forward_result(fiber, std::move(value));
    return answer;
  }
  fiber.kind->place(result_place(fiber), value);
  fiber.result = result_state::stands;
  return answer;
}

bool thread_state::give_token(control_block& fiber, value_slot&& token) noexcept {
  if (fiber.ending) return false;
  value_slot& slot = cold(fiber).token;
  if (slot.filled()) {
    std::swap(slot, token);  // the old one is the caller's to destroy
  } else {
    slot = std::move(token);
  }
  if (fiber.wait != nullptr && fiber.wait->for_token) resume(*fiber.wait, wake_reason::handed);
  return true;
}

/// The wait that `number` was given to may be over: then the value goes nowhere.
void thread_state::resume_with(control_block& fiber, std::uint64_t number, bool broken,
                               value_slot&& value) noexcept {
  const cold_part* part = cold_if_any(fiber);
  resume_wait* waiting = part == nullptr ? nullptr : part->resuming;
  if (waiting == nullptr || waiting->number != number) return;
  if (!waiting->wait.claim(wake_reason::handed)) return;
  waiting->broken = broken;
  waiting->value = std::move(value);
  // Resumed before it has parked, it finds the claim when it comes to park.
  if (fiber.wait == &waiting->wait) make_runnable(fiber);
}

/// A failure that has ended the parent's wait is the parent's: nobody can claim it any more.
void thread_state::refresh_failures(control_block& fiber) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_failure);
  const cold_part* part = cold_if_any(fiber);
  control_block* failed = part == nullptr ? nullptr : part->failures;
  for (; failed != nullptr; failed = cold(*failed).next_failure) {
    const family* from = failed->belongs_to;
    const bool collected = from != nullptr && from->is_group && from->waiter != nullptr;
    if (collected) continue;
    if (interrupt_fiber(fiber, interrupt_failure)) cold(*failed).told_to = nullptr;
    return;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
