// SPDX-License-Identifier: MIT
// A fiber from spin to the run queue: its block, its stack, and a context that begins in
// fiber_main().
#include <motet/fiber.hpp>
#include <new>
#include <stdexcept>
#include <utility>

#include "family_links.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

/// Rounds down to where something so aligned can stand.
std::byte* aligned_below(std::byte* end, std::size_t size, std::size_t alignment) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(end - size);
  return end - size - (address & (alignment - 1));
}

void make_room_for_result(control_block& block) {
  const body_kind& kind = *block.kind;
  void*& place = large_result_of(block);
  place = nullptr;
  place = ::operator new(kind.result_size, std::align_val_t(kind.result_alignment));
}

}  // namespace

control_block& thread_state::take_block() {
  control_block& block = blocks_.take();
  block.home = this;
  block.mail = mail_;
  ++mail_->blocks;
  return block;
}

control_block& thread_state::make_fiber(family& parents, const body_kind& kind,
                                        std::size_t stack_size) {
  if (stack_size != options_.stack_size) stack_pool::check_size(stack_size);
  timers_.reserve(timers_wanted_ + timers_of_a_fiber);
  control_block& block = take_block();
  try {
    block.kind = &kind;
    if (!kind.result_is_small) make_room_for_result(block);
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
  fiber.references = 2;  // the handle's and ours
  std::byte* top = aligned_below(static_cast<std::byte*>(fiber.body), 0, 16);
  lay_out(fiber.where, top, &fiber_main, &fiber);
  sanitizer::describe(fiber.where.watched, fiber.runs_on.bottom, fiber.runs_on.size(), true);
  join_family(fiber, parents);
  fibers_.push_back(fiber);
  timers_wanted_ += timers_of_a_fiber;
  ++living_;
  make_runnable(fiber);
}

namespace {

void describe(control_block& fiber, spin_options& how) noexcept {
  fiber.transient = how.transient;
  if (how.name.empty()) return;
  cold(fiber).name = std::move(how.name);
  fiber.named = true;
}

bool has_values(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && part->locals.has_values();
}

[[noreturn, gnu::noinline]] void refuse_to_spin(const thread_state& thread) {
  if (thread.foreign()) throw std::logic_error("a fiber cannot spin on a foreign executor");
  interruption::throw_cancelled("its parent is ending", 0, {});
}

control_block& make(thread_state& thread, family* parents, spin_options* how, const body_kind& kind,
                    call_site site) {
  control_block& spinner = thread.running();
  family& joined = parents != nullptr ? *parents : cold(spinner).own;
  if (joined.closed) refuse_to_spin(thread);
  if (spinner.cancel_reason != nullptr && !thread.in_shield(spinner)) {
    thread.throw_cancellation();
  }
  const std::size_t usual = thread.settings().stack_size;
  control_block& made =
      thread.make_fiber(joined, kind, how == nullptr ? usual : how->stack_size.value_or(usual));
  made.site = site;
  if (how != nullptr) describe(made, *how);
  return made;
}

/// A copy may throw, or wait: all are made before anything is looked at.
[[gnu::noinline]] control_block& make_with_copies(thread_state& thread, family* parents,
                                                  spin_options* how, const body_kind& kind,
                                                  call_site site) {
  local_list copies = cold(thread.running()).locals.copies();
  control_block& made = make(thread, parents, how, kind, site);
  cold(made).locals = std::move(copies);
  return made;
}

}  // namespace

[[gnu::flatten]] launch::launch(family* parents, spin_options* how, const body_kind& kind,
                                call_site site) {
  thread_state& thread = here();
  if (has_values(thread.running())) [[unlikely]] {
    block_ = &make_with_copies(thread, parents, how, kind, site);
  } else {
    block_ = &make(thread, parents, how, kind, site);
  }
}

void launch::unmake() noexcept {
  home_of(*block_).unmake(*block_);
}

[[gnu::flatten]] handle launch::start() noexcept {
  home_of(*block_).start(*block_);
  return handle(std::exchange(block_, nullptr));
}

}  // namespace motet::inline MOTET_ABI::detail
