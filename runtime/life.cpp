// SPDX-License-Identifier: MIT
// A fiber from spin to burial. Its epilogue runs on its own stack: the body is left, the children
// are ended, what the body captured is destroyed, the outcome is published, and whoever runs next
// frees the stack.
#include <cstdlib>
#include <new>
#include <utility>

#include "switchpoint.hpp"
#include "unhandled.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

constexpr std::size_t small_result_size = sizeof(control_block::small_result);

bool fits_in_block(const body_kind& kind) noexcept {
  return kind.result_size <= small_result_size &&
         kind.result_alignment <= alignof(std::max_align_t);
}

/// Rounds down to where something so aligned can stand.
std::byte* aligned_below(std::byte* end, std::size_t size, std::size_t alignment) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(end - size);
  return end - size - address % alignment;
}

}  // namespace

control_block& thread_state::make_fiber(family& parents, const body_kind& kind,
                                        std::size_t stack_size) {
  if (stack_size != options_.stack_size) stack_pool::check_size(stack_size);
  timers_.reserve(timers_wanted_ + 1);
  control_block& block = *take_block();
  try {
    block.kind = &kind;
    block.result = block.small_result;
    if (!fits_in_block(kind)) {
      block.result = ::operator new(kind.result_size, std::align_val_t(kind.result_alignment));
    }
    // A small body stands on the stack as any local does; a large one must not use it up.
    block.runs_on = stacks_.take(kind.size > 4096 ? stack_size + kind.size : stack_size);
  } catch (...) {
    free_block(block);
    throw;
  }
  block.belongs_to = &parents;
  block.body = aligned_below(block.runs_on.top, kind.size, kind.alignment);
  return block;
}

void thread_state::unmake(control_block& fiber) noexcept {
  stacks_.give_back(fiber.runs_on);
  free_block(fiber);
}

void thread_state::start(control_block& fiber) noexcept {
  family& parents = *fiber.belongs_to;
  fiber.id = next_id_++;
  fiber.parent = parents.owner;
  retain(*fiber.parent);
  fiber.spun_at = reading_;
  fiber.own.owner = &fiber;
  fiber.references = 2;  // the handle's and ours
  std::byte* top = aligned_below(static_cast<std::byte*>(fiber.body), 0, 16);
  lay_out(fiber.where, top, &fiber_main, &fiber);
  sanitizer::describe(fiber.where.watched, fiber.runs_on.bottom, fiber.runs_on.size(), true);
  join_family(fiber, parents);
  fibers_.push_back(fiber);
  ++timers_wanted_;
  ++living_;
  make_runnable(fiber);
}

void thread_state::fiber_main(void* block) {
  control_block& fiber = *static_cast<control_block*>(block);
  sanitizer::after_switch(fiber.where.watched);
  fiber.home->live(fiber);
}

void thread_state::live(control_block& fiber) noexcept {
  bury();
  run_body(fiber);
  if (fiber.is_main) [[unlikely]]
    end_child_process(fiber);
  fiber.ending = true;
  end_children(fiber);
  ++fiber.shields;  // what the body captured may block in its destructors, but cannot throw there
  fiber.kind->destroy_body(fiber.body);
  if (!shared(fiber)) drop_result(fiber);
  publish(fiber);
  ended_ = &fiber;
  hand_on(true);
}

void thread_state::run_body(control_block& fiber) noexcept {
  try {
    deliver();
    fiber.kind->run(fiber.body, fiber.result, fiber.result_stands);
    fiber.ended_by = outcome::value;
  } catch (const cancelled& how) {
    if (fiber.cancel_reason == nullptr) fiber.cancel_reason = how.reason();
    fiber.ended_by = fiber.result_stands ? outcome::value : outcome::cancelled;
  } catch (...) {
    fiber.error = std::current_exception();
    fiber.ended_by = outcome::error;
  }
}

/// Nobody can be told what it returned: that goes now, on the fiber's own stack.
void thread_state::drop_result(control_block& fiber) noexcept {
  if (!std::exchange(fiber.result_stands, false)) return;
  fiber.kind->destroy_result(fiber.result);
}

/// A failure of its children is the fiber's own if it has none; the others, nobody's.
void thread_state::tell_untold(control_block& parent) noexcept {
  while (control_block* failed = take_failure(parent, nullptr)) {
    tell_unhandled(options_, failed->error);
    release(*failed);
  }
}

/// A fiber that has forked is the child's main fiber: the process ends with its body.
void thread_state::end_child_process(control_block& self) noexcept {
  if (self.ended_by == outcome::error) tell_unhandled(options_, self.error);
  std::exit(EXIT_SUCCESS);
}

/// From here on the outcome stands and others may read it.
void thread_state::publish(control_block& fiber) noexcept {
  if (fiber.ended_by != outcome::error) {
    if (control_block* failed = take_failure(fiber, nullptr)) {
      fiber.error = failed->error;
      fiber.ended_by = outcome::error;
      release(*failed);
    }
  }
  tell_untold(fiber);
  fiber.raised = nullptr;
  fiber.token.reset();
  list<control_block, fibers_tag>::remove(fiber);
  --timers_wanted_;
  --living_;
  const bool told = tell_awaiters(fiber);
  if (fiber.ended_by == outcome::error && !told) report_failure(fiber);
  leave_family(fiber);
  if (exit_waiter_ != nullptr) resume(*exit_waiter_, wake_reason::handed);
}

/// Returns: whether anybody was still waiting.
bool thread_state::tell_awaiters(control_block& ended) noexcept {
  ended.state.store(fiber_state::dead, std::memory_order_release);
  bool told = false;
  while (awaiter* waiting = ended.awaiters.pop_front()) told = waiting->tell(*waiting) || told;
  return told;
}

control_block* thread_state::take_block() {
  void* memory = nullptr;
  if (free_blocks_.empty()) {
    if (free_blocks_.capacity() <= mail_->blocks) {  // so that giving one back cannot fail
      free_blocks_.reserve(2 * mail_->blocks + 16);
    }
    memory = ::operator new(sizeof(control_block));
  } else {
    memory = free_blocks_.back();
    free_blocks_.pop_back();
  }
  auto* block = ::new (memory) control_block;
  block->home = this;
  block->mail = mail_;
  block->abroad.fiber = block;
  ++mail_->blocks;
  return block;
}

void thread_state::free_block(control_block& block) noexcept {
  destroy_block(block);
  --mail_->blocks;
  free_blocks_.push_back(&block);
}

/// Whether anybody but the heart refers to a fiber that runs.
bool thread_state::shared(control_block& fiber) noexcept {
  return fiber.references > 1 || fiber.went_abroad.load(std::memory_order_relaxed);
}

bool thread_state::in_use(control_block& block) noexcept {
  if (block.references > 0) return true;
  if (!block.went_abroad.load(std::memory_order_relaxed)) return false;
  const std::lock_guard guard(mail_->lock());
  return block.abroad.queued || block.references + block.abroad.references > 0;
}

bool thread_state::unreferred(control_block& block) noexcept {
  --block.references;
  return !in_use(block);
}

/// A block refers to its parent's: a line of ancestors may go with the last descendant.
void thread_state::release(control_block& block) noexcept {
  for (control_block* released = &block; released != nullptr && unreferred(*released);) {
    control_block* parent = released->parent;
    free_block(*released);
    released = parent;
  }
}

void release_after_end(control_block& unreferred) noexcept {
  for (control_block* block = &unreferred; block != nullptr;) {
    mailbox& mail = *block->mail;
    std::unique_lock guard(mail.lock());
    --block->abroad.references;
    const bool unused = block->references + block->abroad.references == 0;
    guard.unlock();
    if (!unused) return;
    control_block* parent = block->parent;
    destroy_block(*block);  // not under the lock: it runs destructors of the user's
    ::operator delete(block);
    guard.lock();
    const bool last = --mail.blocks == 0;
    guard.unlock();
    if (last) mailbox::dispose(&mail);
    block = parent;
  }
}

void destroy_block(control_block& block) noexcept {
  if (block.result_stands) block.kind->destroy_result(block.result);
  if (block.result != nullptr && block.result != block.small_result) {
    ::operator delete(block.result, std::align_val_t(block.kind->result_alignment));
  }
  block.~control_block();
}

}  // namespace motet::inline MOTET_ABI::detail
