// SPDX-License-Identifier: MIT
// See cancellation/pending_throw.hpp. A cancellation, and the end of a scope, are permanent: every
// switchpoint throws them until the body, or the scope, has been left.
#include "cancellation/pending_throw.hpp"

#include <motet/detail/base/timespan.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/core/stop_scope.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/saturating_time.hpp"
#include "cancellation/child_failures.hpp"
#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "unhandled/exception_object.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool in_shield(const control_block& fiber) noexcept {
  for (const scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind == scope_kind::shields) return true;
  }
  return unwind_depth(fiber, *fiber.home) > 0;
}

namespace {

/// After a fiber has swallowed its end so often in a row, a notice is given.
constexpr unsigned most_swallowed = 100;

clock::time_point grace_end(const thread_state& home, const lasting_interruption& cause) noexcept {
  return deadline_after(cause.handled_since, timespan(home.settings().handler_grace).length);
}

/// Whether a handler of this very interruption runs in the fiber.
bool handles(const control_block& fiber, const lasting_interruption& cause) noexcept {
  if (!cause.thrown) return false;
  const thread_state& home = home_of(fiber);
  void* exceptions = &fiber == &home.running() ? home.exceptions().chain : fiber.chain;
  return any_caught(exceptions, [&](void* object) {
    if (type_of(object) != typeid(cancelled)) return false;
    return interruption::id_of(*static_cast<const cancelled*>(object)) == cause.id;
  });
}

/// Whether a handler of it runs whose grace, if it has begun, has not ended.
bool is_being_handled(const control_block& fiber, const lasting_interruption& cause) noexcept {
  if (!cause.thrown) return false;
  thread_state& home = home_of(fiber);
  if (cause.handled && home.time.now() >= grace_end(home, cause)) return false;
  return handles(fiber, cause);
}

/// The grace of a handler begins at its first switchpoint.
void note_handling(const control_block& fiber, lasting_interruption& cause) noexcept {
  if (cause.handled || !handles(fiber, cause)) return;
  cause.handled = true;
  cause.handled_since = home_of(fiber).time.now();
}

/// Called at a switchpoint of the fiber, for each of its interruptions that could be thrown there.
void note_handlers(control_block& fiber) noexcept {
  const unsigned depth = unwind_depth(fiber, *fiber.home);
  for (scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->depth < depth || entry->kind == scope_kind::shields) return;
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    if (limit.ended) note_handling(fiber, limit.cause);
  }
  const bool cancelled_now = (fiber.interrupts & interrupt_cancel) != 0;
  if (depth == 0 && cancelled_now) note_handling(fiber, cold(fiber).cancellation);
}

/// Whether a handler of an enclosing interruption runs that was thrown after the scope `inner` was
/// entered: then the end of `inner` is not thrown into that handler.
bool silenced(const scope& inner, unsigned depth) noexcept {
  const control_block& fiber = *inner.fiber;
  const auto silences = [&](lasting_interruption& outer) {
    return inner.cause.id <= outer.scopes_then && is_being_handled(fiber, outer);
  };
  for (scope_entry* entry = inner.outer; entry != nullptr; entry = entry->outer) {
    if (entry->depth < depth || entry->kind == scope_kind::shields) return false;
    if (entry->kind != scope_kind::ends) continue;
    auto& outer = static_cast<scope&>(*entry);
    if (outer.ended && silences(outer.cause)) return true;
  }
  return depth == 0 && (fiber.interrupts & interrupt_cancel) != 0 &&
         silences(cold_if_any(fiber)->cancellation);
}

void end_grace_later(thread_state& home, timer& alarm, const lasting_interruption& cause) noexcept {
  if (!cause.handled || alarm.armed()) return;
  alarm.due = grace_end(home, cause);  // perhaps by now: then it fires at the next poll
  alarm.fire = [](timer& due_timer) noexcept { interrupt_fiber(*due_timer.fiber, interrupt_anew); };
  home.time.arm(alarm);
}

/// Tells the scopes inside of what is about to be thrown in `fiber`, up to `last`; null: all.
void announce_up_to(control_block& fiber, const scope* last) noexcept {
  ++fiber.shields;
  for (scope_entry* entry = fiber.scopes; entry != nullptr && entry != last; entry = entry->outer) {
    if (entry->kind == scope_kind::announces) static_cast<announcing_scope*>(entry)->announce();
  }
  --fiber.shields;
}

void report_swallowing(const control_block& fiber) noexcept {
  try {
    notice(home_of(fiber).settings(), "fiber " + label_of(fiber) + ", spun at " + fiber.site.file +
                                          ":" + std::to_string(fiber.site.line) +
                                          ", has swallowed its cancellation 100 times");
  } catch (const std::bad_alloc&) {
    // A notice is no reason to fail.
  }
}

/// Before what lasts is thrown again in the running fiber, every runnable fiber has its turn: a
/// loop that swallows it starves nobody.
void let_others_run_before(thread_state& home, const lasting_interruption& cause) noexcept {
  control_block& fiber = home.running();
  cold_part& part = cold(fiber);
  if (!cause.thrown) {
    part.swallow_count = 0;
    return;
  }
  if (++part.swallow_count == most_swallowed) report_swallowing(fiber);
  if (home.may_switch()) home.snooze();
}

void note_thrown(thread_state& home, lasting_interruption& cause) noexcept {
  if (is_being_handled(home.running(), cause)) return;  // spin() throws in a handler, too
  cause.thrown = true;
  cold(home.running()).thrown_last = cause.id;
  cause.scopes_then = home.store.last_scope();
}

[[noreturn]] void throw_failure(control_block& fiber) {
  control_block* child = take_failure(fiber, nullptr);
  refresh_failures(fiber);
  const std::exception_ptr error = child->error;
  release_at_home(*child);
  std::rethrow_exception(error);
}

[[noreturn]] void throw_end_of(thread_state& home, scope& inner) {
  note_thrown(home, inner.cause);
  announce_up_to(home.running(), &inner);
  interruption::throw_cancelled(inner.cause.reason, inner.cause.id);
}

/// Looks from the inside outwards, up to a shield, or a scope that was entered at another depth of
/// unwinding: so nothing from outside reaches a destructor, but a time limit within it works.
/// Returns: the outermost scope that has ended and is not being handled, or null. `reaches_body`:
///          whether the search came to the fiber's body.
scope* ended_scope_of(const control_block& fiber, unsigned depth, bool& reaches_body) noexcept {
  scope* outermost = nullptr;
  for (scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->depth < depth || entry->kind == scope_kind::shields) return outermost;
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    if (!limit.ended || is_being_handled(fiber, limit.cause)) continue;
    if (!silenced(limit, depth)) outermost = &limit;
  }
  reaches_body = depth == 0;
  return outermost;
}

}  // namespace

/// The outermost interruption is thrown.
effective_interruption effective_interruption_of(const control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  const unsigned depth = unwind_depth(fiber, *fiber.home);
  const bool cancelled_now = (fiber.interrupts & interrupt_cancel) != 0;
  if (cancelled_now && part->escalated && depth == 0)
    return {interruption_kind::cancellation, nullptr};
  bool reaches_body = false;
  scope* const outermost = ended_scope_of(fiber, depth, reaches_body);
  if (reaches_body) {
    if (fiber.raised != nullptr) return {interruption_kind::raised, nullptr};
    if (cancelled_now && !is_being_handled(fiber, part->cancellation))
      return {interruption_kind::cancellation, nullptr};
    if ((fiber.interrupts & interrupt_failure) != 0) return {interruption_kind::failure, nullptr};
  }
  if (outermost != nullptr) return {interruption_kind::scope, outermost};
  return {};
}

/// An exception replaces a token that was given but not yet consumed; every other result of the
/// wait stands, and the exception is thrown at the next switchpoint.
bool interrupt_fiber(control_block& fiber, interrupt bits) noexcept {
  if (fiber.home->recorded()) home_of(fiber).recording->note_interrupt(fiber, bits);
  fiber.interrupts |= bits;
  wait_record* wait = fiber.wait;
  if (wait == nullptr || !wait->interruptible || !effective_interruption_of(fiber)) return false;
  thread_state& home = home_of(fiber);
  if (home.resume(*wait, wake_reason::interrupted)) return true;
  if (bits == interrupt_raised && wait->for_token() && wait->ended() == wake_reason::handed) {
    wait->end_instead(wake_reason::interrupted);
    home.cleaner.destroy_later(std::move(cold(fiber).token));
  }
  return false;
}

namespace {

/// In a forked child.
/// Returns: whether the fiber is to be thrown why its thread has no backend.
bool lacks_kernel(thread_state& home, control_block& fiber) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_kernel);  // on_notice may be called
  home.kernel_refusal = hooks.make_kernel_of_child(home);
  if (home.kernel_refusal == nullptr) return false;
  fiber.interrupts |= interrupt_kernel;
  return !in_shield(fiber);
}

}  // namespace

bool thread_core::must_throw_slowly() noexcept {
  if ((runner_->interrupts & interrupt_kernel) != 0) [[unlikely]] {
    if (lacks_kernel(static_cast<thread_state&>(*this), *runner_)) return true;
  }
  note_handlers(*runner_);
  return static_cast<bool>(effective_interruption_of(*runner_));
}

/// A wait in a handler goes on, and ends with the handler's grace.
bool interrupted_at_once(thread_state& home) noexcept {
  control_block& fiber = home.running();
  if (home.foreign) return true;
  note_handlers(fiber);
  if (effective_interruption_of(fiber)) return true;
  for (scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    if (limit.ended) end_grace_later(home, limit.alarm, limit.cause);
  }
  if ((fiber.interrupts & interrupt_cancel) != 0) {
    cold_part& part = cold(fiber);
    part.grace.fiber = &fiber;
    end_grace_later(home, part.grace, part.cancellation);
  }
  return false;
}

void thread_core::throw_pending() {
  auto& home = static_cast<thread_state&>(*this);
  control_block& fiber = *runner_;
  if ((fiber.interrupts & interrupt_kernel) != 0 && home.kernel_refusal != nullptr) [[unlikely]]
    std::rethrow_exception(std::exchange(home.kernel_refusal, nullptr));
  note_handlers(fiber);
  effective_interruption effective = effective_interruption_of(fiber);
  if (effective.kind == interruption_kind::scope) {
    let_others_run_before(home, effective.source->cause);
    effective = effective_interruption_of(fiber);
  } else if (effective.kind == interruption_kind::cancellation) {
    let_others_run_before(home, cold(fiber).cancellation);
    effective = effective_interruption_of(fiber);
  }
  switch (effective.kind) {
    case interruption_kind::raised:
      fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_raised);
      std::rethrow_exception(std::exchange(fiber.raised, nullptr));
    case interruption_kind::failure:
      throw_failure(fiber);
    case interruption_kind::scope:
      throw_end_of(home, *effective.source);
    case interruption_kind::cancellation:
      throw_cancellation(home);
    case interruption_kind::none:
      break;
  }
  home.check_may_wait();
  throw std::logic_error("internal error: a wait was interrupted without a pending interruption");
}

void throw_cancellation(thread_state& thread) {
  control_block& fiber = thread.running();
  lasting_interruption& cause = cold(fiber).cancellation;
  note_thrown(thread, cause);
  announce_up_to(fiber, nullptr);
  interruption::throw_cancelled(cause.reason, cause.id);
}

}}}  // namespace motet::MOTET_ABI::detail
