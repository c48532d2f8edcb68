// SPDX-License-Identifier: MIT
// How a fiber is interrupted: by an exception raised in it, its cancellation, the end of a scope,
// or the failure of a child. Each is a flag or a slot of the fiber, so that none displaces another;
// a wait that has ended is not affected. What a switchpoint throws is in
// cancellation/pending_throw.cpp.
#include "cancellation/interrupt.hpp"

#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/pending_throw.hpp"
#include "cancellation/remote_verbs.hpp"
#include "core/hooks.hpp"
#include "core/resume_wait.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool raise_here(control_block& fiber, std::exception_ptr error) noexcept {
  if (fiber.ending || fiber.raised != nullptr) return false;
  fiber.raised = std::move(error);
  interrupt_fiber(fiber, interrupt_raised);
  return true;
}

cancel_result cancel_here(control_block& fiber, const cancel_reason& reason) noexcept {
  if (fiber.ending) return cancel_result::finished;
  if (fiber.to_end_for != nullptr) return cancel_result::already;
  lasting_interruption& cause = cold(fiber).cancellation;
  cause.id = home_of(fiber).store.next_scope();
  cause.reason = reason;
  fiber.to_end_for = &cause.reason;
  interrupt_fiber(fiber, interrupt_cancel);
  return cancel_result::accepted;
}

namespace {

bool has_children(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && (part->own_family.size > 0 || part->own_family.next != nullptr);
}

/// The grace period has expired.
void escalate(control_block& fiber) noexcept {
  cold(fiber).escalated = true;
  interrupt_fiber(fiber, interrupt_cancel);
  escalate_below(fiber);
}

}  // namespace

/// The others' timers fire immediately; recursion in a deep tree would need too much stack.
void escalate_below(control_block& fiber) noexcept {
  cold_part& part = cold(fiber);
  const cancel_reason reason = termination_by(fiber);
  for (control_block* other : {part.proxy_for, part.callee}) {
    if (other != nullptr) terminate(*other, clock::duration::zero(), reason);
  }
  for (family* group = &part.own_family; group != nullptr; group = group->next) {
    terminate_family(*group, clock::duration::zero(), reason);
  }
}

/// Of several graces, that of the earliest end counts. A fiber whose body is over waits for its
/// children, which are to end, too.
cancel_result terminate_here(control_block& fiber, clock::duration grace,
                             const cancel_reason& reason) noexcept {
  const cancel_result answer = cancel_here(fiber, reason);
  if (answer == cancel_result::finished && !has_children(fiber)) return answer;
  cold_part& part = cold(fiber);
  timers& time = home_of(fiber).time;
  const clock::time_point due = time.after(grace);
  timer& alarm = part.termination_timer;
  if (part.escalated || (alarm.armed() && alarm.due <= due)) return answer;
  time.disarm(alarm);
  alarm.due = due;
  alarm.fiber = &fiber;
  alarm.fire = [](timer& due_now) noexcept { escalate(*due_now.fiber); };
  time.arm(alarm);
  return answer;
}

void terminate_family(family& children, clock::duration grace,
                      const cancel_reason& reason) noexcept {
  for (control_block* child = children.children.front(); child != nullptr;
       child = children.children.next(*child)) {
    terminate_here(*child, grace, reason);
  }
}

cancel_result give_result(control_block& fiber, const cancel_reason& reason,
                          value_slot&& value) noexcept {
  const cancel_result answer = cancel_here(fiber, reason);
  if (answer != cancel_result::accepted) return answer;
  if (is_away(fiber)) {
    hooks.forward_result(*journey_of_any(fiber), std::move(value));
    return answer;
  }
  fiber.kind->emplace(result_storage(fiber), value);
  fiber.result = result_state::stands;
  return answer;
}

bool give_token(control_block& fiber, value_slot&& token) noexcept {
  if (fiber.ending) return false;
  value_slot& slot = cold(fiber).token;
  if (slot.filled()) {
    std::swap(slot, token);  // the old one is the caller's to destroy
  } else {
    slot = std::move(token);
  }
  if (fiber.wait != nullptr && fiber.wait->for_token()) {
    fiber.home->resume(*fiber.wait, wake_reason::handed);
  }
  return true;
}

/// The wait that `number` was given to may be over: then the value goes nowhere.
void resume_here(control_block& fiber, std::uint64_t number, bool failing,
                 value_slot&& value) noexcept {
  const cold_part* part = cold_if_any(fiber);
  resume_wait* wait = part == nullptr ? nullptr : part->resume;
  if (wait == nullptr || wait->number != number) return;
  if (!wait->wait.claim(wake_reason::handed)) return;
  wait->broken = failing;
  wait->value = std::move(value);
  // Resumed before it has parked, it finds the claim when it comes to park.
  if (fiber.wait == &wait->wait) fiber.home->make_runnable(fiber);
}

}}}  // namespace motet::MOTET_ABI::detail
