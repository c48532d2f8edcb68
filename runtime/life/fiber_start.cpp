// SPDX-License-Identifier: MIT
// A fiber from spin to the run queue: its block, its stack, and a context that begins in
// fiber_main().
#include <cstdio>
#include <cstdlib>
#include <motet/fiber.hpp>
#include <new>
#include <stdexcept>
#include <utility>

#include "life/family_links.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: the highest place below `end` for an object of that size and alignment.
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

/// The first use of a block also reserves room for the timers of its fibers.
void* thread_state::room_for_new_block() {
  timers_.reserve(timers_wanted_ + timers_of_a_fiber);
  void* place = blocks_.take_new();
  timers_wanted_ += timers_of_a_fiber;
  return place;
}

void* thread_state::room_for_block() {
  return blocks_.has_used() ? blocks_.take_used() : room_for_new_block();
}

control_block& thread_state::make_fiber(family& parents, const body_kind& kind, call_site site,
                                        std::size_t stack_size) {
  if (stack_size != options_.stack_size) stack_pool::check_size(stack_size);
  void* place = room_for_block();
  constexpr int references = 2;  // of the handle, and of the thread until the fiber is buried
  control_block& block = *::new (place) control_block(
      *this, *mail_, references, next_id_++, reading_, &parents, parents.owner, &kind, site);
  ++mail_->blocks;
  try {
    if (!kind.result_is_small) make_room_for_result(block);
    block.runs_on = stacks_.take(stack_size + kind.more_stack);
  } catch (...) {
    free_block(block);
    throw;
  }
  retain(*block.parent);
  block.body = aligned_below(block.runs_on.top, kind.size, kind.alignment);
  std::byte* top = aligned_below(static_cast<std::byte*>(block.body), 0, 16);
  lay_out(block.where, top, &fiber_main, &block);
  sanitizer::describe(block.where.watched, block.runs_on.bottom, block.runs_on.size(), true);
  return block;
}

void thread_state::unmake(control_block& fiber) noexcept {
  sanitizer::forget(fiber.where.watched, fiber.runs_on.bottom, fiber.runs_on.size());
  stacks_.give_back(fiber.runs_on);
  fiber.references = 1;
  release(fiber);
}

namespace {

void describe(control_block& fiber, spin_options& how) noexcept {
  fiber.transient = how.transient;
  if (how.name.empty()) return;
  cold(fiber).name = std::move(how.name);
  fiber.named = true;
}

[[noreturn, gnu::noinline]] void refuse_to_spin(const thread_state& thread) {
  if (thread.foreign()) throw std::logic_error("a fiber cannot spin on a foreign executor");
  interruption::throw_cancelled("its parent is ending", 0, {});
}

control_block& make_in(thread_state& thread, family& joined, spin_options* how,
                       const body_kind& kind, call_site site) {
  control_block& spinner = thread.running();
  if (joined.closed) refuse_to_spin(thread);
  if (spinner.cancel_reason != nullptr && !thread.in_shield(spinner)) {
    thread.throw_cancellation();
  }
  const std::size_t usual = thread.settings().stack_size;
  control_block& made = thread.make_fiber(joined, kind, site,
                                          how == nullptr ? usual : how->stack_size.value_or(usual));
  if (how != nullptr) describe(made, *how);
  return made;
}

/// The copy or move constructor of a callable may wait, but not teleport.
void check_still_at(const thread_core& home) noexcept {
  if (self_core() == &home) return;
  std::fputs("motet: a fiber went to another thread while it copied or moved what it spins\n",
             stderr);
  std::abort();
}

/// A copy of an inherited local may throw, or wait: all are made before the family is looked at.
[[gnu::noinline]] control_block& make_with_copies(thread_state& thread, family& joined,
                                                  spin_options* how, const body_kind& kind,
                                                  call_site site) {
  if (joined.closed) refuse_to_spin(thread);
  const handle owner = refer_to(*joined.owner);
  local_list copies = cold(thread.running()).locals.copies();
  check_still_at(thread);
  if (!stands(*owner.get(), joined)) refuse_to_spin(thread);
  control_block& made = make_in(thread, joined, how, kind, site);
  cold(made).locals = std::move(copies);
  return made;
}

}  // namespace

[[gnu::flatten]] control_block& launch::make(family* parents, spin_options* how,
                                             const body_kind& kind, call_site site) {
  thread_state& thread = here();
  control_block& spinner = thread.running();
  cold_part* part = parents == nullptr ? &cold(spinner) : cold_if_any(spinner);
  family& joined = parents == nullptr ? part->own : *parents;
  if (part != nullptr && part->locals.has_values()) [[unlikely]]
    return make_with_copies(thread, joined, how, kind, site);
  return make_in(thread, joined, how, kind, site);
}

void launch::look_again() {
  control_block& fiber = *block_;
  check_still_at(*fiber.home);
  thread_state& thread = home_of(fiber);
  const bool forked = fiber.mail != &thread.mail();
  const bool orphaned = forked && fiber.parent != &thread.running();
  if (orphaned || !stands(*fiber.parent, *fiber.belongs_to)) {
    if (fiber.kind->destroy_body != nullptr) fiber.kind->destroy_body(fiber.body);
    refuse_to_spin(thread);
  }
  if (!forked) return;
  fiber.mail = &thread.mail();
  ++fiber.mail->blocks;
}

void launch::unmake() noexcept {
  check_still_at(*block_->home);
  home_of(*block_).unmake(*block_);
}

}}}  // namespace motet::MOTET_ABI::detail
