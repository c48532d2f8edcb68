// SPDX-License-Identifier: MIT
// A fiber from its first run to burial. Its epilogue runs on its own stack: the body is left, the
// children are ended, the locals and the captures of the body are destroyed, the outcome is
// published, and the next fiber that runs frees the stack.
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>

#include "failures/unhandled.hpp"
#include "heart/travel_hooks.hpp"
#include "life/family_links.hpp"
#include "life/origin.hpp"
#include "life/remote_fiber.hpp"
#include "words/made_exception.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

[[gnu::flatten]] void thread_state::fiber_main(void* block) {
  control_block& fiber = *static_cast<control_block*>(block);
  sanitizer::after_switch(fiber.where.watched);
  home_of(fiber).live(fiber);
}

/// Inlined into fiber_main(), because it does not return: a call without a return would make the
/// processor mispredict the returns of the next fiber.
[[gnu::always_inline]] inline void thread_state::live(control_block& fiber) noexcept {
  bury();
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
  if (fiber.has_cold_part) come_home(fiber);
  if (!shared(fiber)) drop_result(fiber);
  publish(fiber);
  ended_ = &fiber;
  hand_on(true);
}

namespace {

/// Takes the place of an exception that is not of C++.
std::exception_ptr foreign_exception() noexcept {
  return made_exception<std::runtime_error>("an exception of another language");
}

}  // namespace

void thread_state::run_body(control_block& fiber) noexcept {
  try {
    deliver();
    {
      const homecoming back(fiber);
      void* result = fiber.kind->result_size == 0 ? nullptr : result_place(fiber);
      fiber.kind->run(fiber.body, result, fiber.result);
    }
    fiber.ended_by = outcome::value;
  } catch (const cancelled& how) {
    if (fiber.cancel_reason == nullptr) fiber.cancel_reason = how.reason();
    fiber.ended_by = fiber.result == result_state::none ? outcome::cancelled : outcome::value;
  } catch (...) {
    fiber.error = std::current_exception();
    if (fiber.error == nullptr) fiber.error = foreign_exception();
    origins::note(fiber.error, fiber);
    fiber.ended_by = outcome::error;
  }
}

void thread_state::begin_anew(call_site site) noexcept {
  running_->id = next_id_++;
  running_->site = site;
  running_->spun_at = reading_;
  *live_errno_ = 0;
}

void thread_state::run_main(const body_kind& kind, void* function) noexcept {
  main_->kind = &kind;
  main_->body = function;
  run_body(*main_);
  main_->body = nullptr;
  main_->ending = true;
}

/// Called when there is no handle that could read the result: destroys it now, on the fiber's own
/// stack.
void thread_state::drop_result(control_block& fiber) noexcept {
  if (std::exchange(fiber.result, result_state::none) == result_state::none) return;
  fiber.kind->destroy_result(result_place(fiber));
}

std::exception_ptr thread_state::take_error_of_child(control_block& parent) noexcept {
  control_block* failed = take_failure(parent, nullptr);
  if (failed == nullptr) return nullptr;
  std::exception_ptr error = failed->error;
  refresh_failures(parent);
  release(*failed);
  return error;
}

/// Returns: the next failure of a child that `fiber` was not told of, or null; failures that were
///          forwarded to it on another thread come first.
std::exception_ptr thread_state::next_failure(control_block& fiber) noexcept {
  if (std::exception_ptr abroad = failure_abroad(fiber)) return abroad;
  return take_error_of_child(fiber);
}

/// The first failure of its children becomes the fiber's own if it has none; the others go to
/// on_unhandled.
void thread_state::inherit_failure(control_block& fiber) noexcept {
  if (fiber.ended_by != outcome::error) {
    if (std::exception_ptr error = next_failure(fiber)) {
      fiber.error = std::move(error);
      fiber.ended_by = outcome::error;
    }
  }
  tell_untold(fiber);
}

void thread_state::tell_untold(control_block& parent) noexcept {
  while (const std::exception_ptr error = next_failure(parent)) tell_unhandled(options_, error);
}

/// A fiber that has forked is the child's main fiber: the process ends with its body.
void thread_state::end_child_process(control_block& self) noexcept {
  if (self.ended_by == outcome::error) tell_unhandled(options_, self.error);
  std::exit(EXIT_SUCCESS);
}

/// Reports exceptions that raise() took, but that the body met no further switchpoint to throw.
void thread_state::tell_undelivered(control_block& fiber) noexcept {
  const undelivered first(options_, std::exchange(fiber.raised, nullptr));
  const undelivered abroad(options_, raised_too_late(fiber));
}

void thread_state::disarm_own(cold_part& part) noexcept {
  disarm(part.grace);
  disarm(part.insistence);
}

/// From here on the outcome is final, and other fibers and threads may read it.
void thread_state::publish(control_block& fiber) noexcept {
  bool travelled = false;
  if (cold_part* part = cold_if_any(fiber)) {
    travelled = part->travels.its != nullptr;
    part->token.reset();
    part->locals.end();  // locals that destructors have made since
    come_home(fiber);
    end_children(fiber);
    inherit_failure(fiber);
    disarm_own(*part);
  }
  if (fiber.raised != nullptr || travelled) [[unlikely]]
    tell_undelivered(fiber);
  list<control_block, fibers_tag>::remove(fiber);
  --living_;
  const bool told = tell_awaiters(fiber);
  family& left = *fiber.belongs_to;
  const bool in_hand = left.is_group && shared(fiber);
  const bool guest = is_guest(fiber);
  if (fiber.ended_by == outcome::error && !told && !guest) report_failure(fiber);
  leave_family(fiber);
  if (guest) tell_guest_over(fiber, told);
  if (left.is_group) tell_group(static_cast<group_family&>(left), fiber, in_hand);
  if (exit_waiter_ != nullptr) resume(*exit_waiter_, wake_reason::handed);
}

/// Returns: whether a fiber or thread was still waiting.
bool thread_state::tell_awaiters(control_block& ended) noexcept {
  ended.state.store(fiber_state::dead, std::memory_order_release);
  bool told = false;
  while (awaiter* waiting = ended.awaiters.pop_front()) told = waiting->tell(*waiting) || told;
  return told;
}

void thread_state::free_block(control_block& block) noexcept {
  using dead_of_group = list<control_block, children_tag>;
  if (dead_of_group::contains(block)) [[unlikely]]
    dead_of_group::remove(block);
  --block.mail->blocks;
  destroy_block(block);
  blocks_.put(block);
}

/// Whether there is a reference to a running fiber besides that of its thread.
bool thread_state::shared(control_block& fiber) noexcept {
  return fiber.references > 1 || fiber.went_abroad.load(std::memory_order_relaxed);
}

bool thread_state::in_use_abroad(control_block& block) noexcept {
  const std::lock_guard guard(mail_->lock());
  const foreign_requests& abroad = requests_of(block);
  return abroad.queued || block.references + abroad.references > 0;
}

bool thread_state::unreferred(control_block& block) noexcept {
  if (--block.references > 0) return false;
  return !block.went_abroad.load(std::memory_order_relaxed) || !in_use_abroad(block);
}

[[gnu::flatten]] void release_last(control_block& fiber) noexcept {
  home_of(fiber).release(fiber);
}

/// Frees a block, which holds a reference to its parent's block.
/// Returns: the parent's block, to be released in turn; null if there is none on this thread.
control_block* thread_state::free_one(control_block& unreferred) noexcept {
  control_block* parent = unreferred.parent;
  free_block(unreferred);
  if (parent == nullptr || is_home_of(*parent)) return parent;
  release_abroad(*parent);
  return nullptr;
}

/// The blocks of a line of ancestors may be freed with that of their last descendant.
void thread_state::release(control_block& block) noexcept {
  for (control_block* released = &block; released != nullptr && unreferred(*released);) {
    released = free_one(*released);
  }
}

namespace {

bool holds_values(const control_block& dead) noexcept {
  return dead.result != result_state::none || dead.error != nullptr;
}

}  // namespace

void thread_state::release_later(control_block& block) noexcept {
  for (control_block* released = &block; released != nullptr && unreferred(*released);) {
    if (holds_values(*released)) {
      reap_later(*released);
      return;
    }
    released = free_one(*released);
  }
}

/// Nobody can free the stack he stands on: the successor does.
[[gnu::flatten]] void thread_core::bury_ended() noexcept {
  static_cast<thread_state*>(this)->bury_now();
}

void thread_state::bury_now() noexcept {
  control_block& buried = *std::exchange(ended_, nullptr);
  sanitizer::forget(buried.where.watched, buried.runs_on.bottom, buried.runs_on.size());
  stacks_.give_back(buried.runs_on);
  if (buried.references > 1) {
    --buried.references;
  } else {
    release_later(buried);
  }
}

void release_after_end(control_block& unreferred) noexcept {
  for (control_block* block = &unreferred; block != nullptr;) {
    mailbox& mail = *block->mail;
    std::unique_lock guard(mail.lock());
    const bool unused = block->references + --requests_of(*block).references == 0;
    guard.unlock();
    if (!unused) return;
    control_block* parent = block->parent;
    const bool elsewhere = parent != nullptr && parent->mail != &mail;
    destroy_block(*block);  // not under the lock: it runs destructors of the program
    guard.lock();
    block_pool::put_after_end(*block);
    const bool last = --mail.blocks == 0;
    guard.unlock();
    if (last) mailbox::dispose(&mail);
    if (elsewhere) {
      detail::release(*parent);
      return;
    }
    block = parent;
  }
}

void destroy_block(control_block& block) noexcept {
  if (block.result != result_state::none) block.kind->destroy_result(result_place(block));
  if (block.kind != nullptr && !block.kind->result_is_small) {
    ::operator delete(large_result_of(block), std::align_val_t(block.kind->result_alignment));
  }
  if (cold_part* part = cold_if_any(block)) part->~cold_part();
  if (block.went_abroad.load(std::memory_order_relaxed)) requests_of(block).~foreign_requests();
  block.~control_block();
}

}}}  // namespace motet::MOTET_ABI::detail
