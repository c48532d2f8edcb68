// SPDX-License-Identifier: MIT
// A fiber from its first run to burial. Its epilogue runs on its own stack: the body is left, the
// children are ended, the locals and the captures of the body are destroyed, the outcome is
// published.
#include "fibers/fiber_end.hpp"

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/made_exception.hpp"
#include "cancellation/child_failures.hpp"
#include "core/hooks.hpp"
#include "core/store/hand_on_for_good.hpp"  // IWYU pragma: keep
#include "fibers/family.hpp"
#include "fibers/group_ends.hpp"
#include "fibers/remote_fiber.hpp"
#include "unhandled/origin.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Replaces an exception that does not come from C++.
std::exception_ptr foreign_exception() noexcept {
  return made_exception<std::runtime_error>("an exception that is not from C++");
}

/// The body of a fiber that was not cancelled has ended with a `cancelled` of another origin.
[[gnu::noinline]] void note_reason(control_block& fiber, const cancelled& end) noexcept {
  cancel_reason& reason = cold(fiber).cancellation.reason;
  reason = end;
  fiber.to_end_for = &reason;
}

}  // namespace

void run_body(control_block& fiber) noexcept {
  try {
    home_of(fiber).deliver();
    {
      const homecoming back(fiber);
      void* result = fiber.kind->result_size == 0 ? nullptr : result_storage(fiber);
      fiber.kind->run(fiber.body, result, fiber.result);
    }
    fiber.ended_by = outcome::value;
  } catch (const cancelled& end) {
    if (fiber.to_end_for == nullptr) note_reason(fiber, end);
    fiber.ended_by = fiber.result == result_state::none ? outcome::cancelled : outcome::value;
  } catch (...) {
    fiber.error = std::current_exception();
    if (fiber.error == nullptr) fiber.error = foreign_exception();
    origins::note(fiber.error, fiber);
    fiber.ended_by = outcome::error;
  }
}

void run_main(thread_state& thread, const body_kind& kind, void* function) noexcept {
  control_block& main = thread.main_fiber();
  main.kind = &kind;
  main.body = function;
  run_body(main);
  main.body = nullptr;
  main.ending = true;
}

namespace {

std::exception_ptr failure_abroad(control_block& fiber) noexcept {
  return journey_of_any(fiber) == nullptr ? nullptr : hooks.failure_while_away(fiber);
}

}  // namespace

std::exception_ptr next_failure(control_block& fiber) noexcept {
  if (std::exception_ptr away = failure_abroad(fiber)) return away;
  return take_error_of_child(fiber);
}

void inherit_failure(control_block& fiber) noexcept {
  if (fiber.ended_by != outcome::error) {
    if (std::exception_ptr error = next_failure(fiber)) {
      fiber.error = std::move(error);
      fiber.ended_by = outcome::error;
    }
  }
  give_up_failures(fiber);
}

void give_up_failures(control_block& parent) noexcept {
  const options& settings = home_of(parent).settings();
  while (const std::exception_ptr error = next_failure(parent)) report_unhandled(settings, error);
}

void give_up_raised(control_block& fiber) noexcept {
  const options& settings = home_of(fiber).settings();
  const undelivered first(settings, std::exchange(fiber.raised, nullptr));
  if (journey_of_any(fiber) == nullptr) return;
  const undelivered away(settings, hooks.raised_too_late(fiber));
}

void disarm_own(timers& time, cold_part& part) noexcept {
  time.disarm(part.grace);
  time.disarm(part.termination_timer);
}

namespace {

bool notify_each(control_block& fiber) noexcept {
  bool notified = false;
  while (awaiter* record = fiber.awaiters.pop_front())
    notified = record->notify(*record) || notified;
  return notified;
}

/// Of several awaiters, the last to become runnable would overtake the first.
[[gnu::noinline]] bool notify_and_return_turn(control_block& fiber) noexcept {
  thread_state& thread = home_of(fiber);
  const std::size_t runnable = thread.runnable();
  const bool notified = notify_each(fiber);
  if (thread.runnable() == runnable + 1) thread.return_turn();
  return notified;
}

}  // namespace

bool notify_awaiters(control_block& fiber) noexcept {
  fiber.state.store(fiber_state::dead, std::memory_order_release);
  if (fiber.owes_turn) [[unlikely]]
    return notify_and_return_turn(fiber);
  return notify_each(fiber);
}

namespace {

/// Called when there is no handle that could read the result: destroys it now, on the fiber's own
/// stack.
void drop_result(control_block& fiber) noexcept {
  if (std::exchange(fiber.result, result_state::none) == result_state::none) return;
  fiber.kind->destroy_result(result_storage(fiber));
}

/// A fiber that has forked is the child's main fiber: the process ends with its body.
[[noreturn]] void end_child_process(control_block& fiber) noexcept {
  if (fiber.ended_by == outcome::error) report_unhandled(home_of(fiber).settings(), fiber.error);
  std::exit(EXIT_SUCCESS);  // NOLINT(concurrency-mt-unsafe): the child has one thread
}

[[gnu::noinline]] void end_cold_part(thread_state& thread, control_block& fiber) noexcept {
  cold_part& part = cold(fiber);
  const bool travelled = part.travels.trip != nullptr;
  come_home(fiber);
  part.token.reset();
  part.locals.end();  // locals that destructors have made since
  come_home(fiber);
  end_children(fiber);
  inherit_failure(fiber);
  disarm_own(thread.time, part);
  if (travelled) give_up_raised(fiber);
}

/// From here on the outcome is final, and other fibers and threads may read it.
void publish(thread_state& thread, control_block& fiber) noexcept {
  if (fiber.has_cold_part) [[unlikely]]
    end_cold_part(thread, fiber);
  if (fiber.raised != nullptr) [[unlikely]]
    give_up_raised(fiber);
  thread.forget(fiber);
  const bool notified = notify_awaiters(fiber);
  family& group = *fiber.belongs_to;
  const bool in_hand = group.is_group && shared(fiber);
  if (fiber.ended_by == outcome::error && !notified && !has_caller(fiber)) report_failure(fiber);
  leave_family(fiber);
  if (has_caller(fiber)) [[unlikely]]
    notify_caller(fiber, notified);
  if (group.is_group) note_end(static_cast<group_family&>(group), fiber, in_hand);
  thread.notify_exit();
}

void live(thread_state& thread, control_block& fiber) noexcept {
  run_body(fiber);
  if (fiber.is_main) [[unlikely]]
    end_child_process(fiber);
  fiber.ending = true;
  ++fiber.shields;  // destructors of locals and captures may wait, but are not interrupted
  if (cold_part* part = cold_if_any(fiber)) {
    end_children(fiber);
    part->locals.end();
  }
  if (fiber.kind->destroy_body != nullptr) fiber.kind->destroy_body(fiber.body);
  if (body_is_beside(fiber)) sanitizer::poison(fiber.body, small_body);
  if (!shared(fiber)) {
    if (fiber.has_cold_part) come_home(fiber);
    drop_result(fiber);
  }
  publish(thread, fiber);
}

}  // namespace

[[gnu::flatten]] void fiber_main(void* block) {
  auto* fiber = static_cast<control_block*>(block);
  sanitizer::after_switch(fiber->resume_context.shadow);
  thread_state& thread = home_of(*fiber);
  for (;;) {
    live(thread, *fiber);
    fiber = &thread.hand_on_for_good();
  }
}

/// A fiber is left out if it, or another one in the meantime, has gone on as a third.
void counted_fiber_main(void* block) {
  auto* fiber = static_cast<control_block*>(block);
  thread_state& thread = home_of(*fiber);
  for (;;) {
    if (thread.counts.samples_stack()) {
      const std::uint64_t reuses = thread.counts.reuses();
      const stack_sample sample(fiber->runs_on);
      live(thread, *fiber);
      if (thread.counts.reuses() == reuses) sample.note(fiber->site);
    } else {
      live(thread, *fiber);
    }
    fiber = &thread.hand_on_for_good();
  }
}

}}}  // namespace motet::MOTET_ABI::detail
