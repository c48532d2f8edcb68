// SPDX-License-Identifier: MIT
// How a fiber is created, and how its block is freed when the last reference is gone. See
// core/store/fiber_store.hpp.
#include "core/store/fiber_store.hpp"

#include <atomic>
#include <motet/detail/core/handle.hpp>
#include <mutex>
#include <new>

#include "base/printable.hpp"
#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

fiber_store::fiber_store(std::uint64_t first) noexcept
    : first_function(hooks.fiber_main), first_id_(first), next_id_(first) {}

journey_owner::~journey_owner() {
  if (trip != nullptr) hooks.dispose_journey(*trip);
}

namespace {

/// The parts that few fibers have.
[[gnu::noinline]] void destroy_rare_parts(control_block& block) noexcept {
  if (cold_part* part = cold_if_any(block)) part->~cold_part();
  if (block.known_remotely.load(std::memory_order_relaxed)) requests_of(block).~remote_requests();
}

/// Destroys what a block that nobody refers to holds, but not its memory.
void destroy_block(control_block& block) noexcept {
  if (block.result != result_state::none) block.kind->destroy_result(result_storage(block));
  if (block.kind != nullptr && !block.kind->result_is_small) {
    ::operator delete(large_result_of(block), std::align_val_t(block.kind->result_alignment));
  }
  if (block.has_cold_part || block.known_remotely.load(std::memory_order_relaxed)) [[unlikely]]
    destroy_rare_parts(block);
  block.~control_block();
}

}  // namespace

void* fiber_store::memory_for_new_block(thread_core& thread, timers& time) {
  thread.reserve_runnable(blocks_.count() + 1);
  time.reserve(timers::of_a_fiber);
  try {
    return blocks_.take_new();
  } catch (...) {
    time.unreserve(timers::of_a_fiber);
    throw;
  }
}

void unmake_fiber(control_block& fiber) noexcept {
  stack_pool& stacks = home_of(fiber).store.stacks;
  if (fiber.has_stack()) {
    sanitizer::forget(fiber.resume_context.shadow, fiber.runs_on.bottom, fiber.runs_on.size());
    stacks.give_back(fiber.runs_on);
  } else {
    stacks.release_promise();
  }
  fiber.references = 1;
  release_last(fiber);
}

void fiber_store::free(control_block& block) noexcept {
  using dead_of_group = list<control_block, children_tag>;
  if (dead_of_group::contains(block)) [[unlikely]]
    dead_of_group::remove(block);
  --block.mail->blocks;
  destroy_block(block);
  blocks_.put(block);
}

namespace {

bool in_use_remotely(control_block& block) noexcept {
  const std::lock_guard guard(block.mail->lock());
  const remote_requests& remote = requests_of(block);
  return remote.queued || block.references + remote.references > 0;
}

bool unreferred(control_block& block) noexcept {
  if (--block.references > 0) return false;
  return !block.known_remotely.load(std::memory_order_relaxed) || !in_use_remotely(block);
}

}  // namespace

control_block* free_one(control_block& fiber) noexcept {
  control_block* parent = fiber.parent;
  thread_state& home = home_of(fiber);
  home.store.free(fiber);
  if (parent == nullptr || home.is_home_of(*parent)) return parent;
  release_remotely(*parent);
  return nullptr;
}

/// The blocks of a line of ancestors may be freed with that of their last descendant.
[[gnu::flatten]] void release_last(control_block& fiber) noexcept {
  for (control_block* block_to_free = &fiber;
       block_to_free != nullptr && unreferred(*block_to_free);) {
    block_to_free = free_one(*block_to_free);
  }
}

namespace {

bool holds_values(const control_block& dead) noexcept {
  return dead.result != result_state::none || dead.error != nullptr;
}

}  // namespace

void release_later(control_block& block) noexcept {
  for (control_block* block_to_free = &block;
       block_to_free != nullptr && unreferred(*block_to_free);) {
    if (holds_values(*block_to_free)) {
      home_of(*block_to_free).cleaner.reap_later(*block_to_free);
      return;
    }
    block_to_free = free_one(*block_to_free);
  }
}

void release_after_end(control_block& fiber) noexcept {
  for (control_block* block = &fiber; block != nullptr;) {
    mailbox& mail = *block->mail;
    std::unique_lock guard(mail.lock());
    const bool last_reference = block->references + --requests_of(*block).references == 0;
    guard.unlock();
    if (!last_reference) return;
    control_block* parent = block->parent;
    const bool of_other_thread = parent != nullptr && parent->mail != &mail;
    destroy_block(*block);  // not under the lock: runs the program's destructors
    guard.lock();
    block_pool::put_after_end(*block);
    const bool last = --mail.blocks == 0;
    guard.unlock();
    if (last) mailbox::dispose(&mail);
    if (of_other_thread) {
      detail::release(*parent);
      return;
    }
    block = parent;
  }
}

std::string_view name_of(const control_block& fiber) noexcept {
  return fiber.named ? std::string_view(cold_if_any(fiber)->name) : std::string_view();
}

std::string copied_name_of(const control_block& fiber) {
  const std::lock_guard guard(fiber.mail->lock());
  return std::string(name_of(fiber));
}

/// A signal handler of this thread sees the old name, none, or the new one.
void rename(control_block& fiber, std::string&& name) {
  std::string& old_name = cold(fiber).name;
  const std::lock_guard guard(fiber.mail->lock());
  fiber.named = false;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  old_name.swap(name);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  fiber.named = !old_name.empty();
  const thread_state& home = home_of(fiber);
  if (home.recorded()) home.recording->note_name(fiber);
}

std::string label_of(const control_block& fiber) {
  return fiber.named ? printable{cold_if_any(fiber)->name}.string() : std::to_string(fiber.id);
}

}}}  // namespace motet::MOTET_ABI::detail
