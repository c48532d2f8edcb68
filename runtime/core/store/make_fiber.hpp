// SPDX-License-Identifier: MIT
// How a fiber is made: a block, and a promise of a stack; or the stack at once, if the body is
// large or the stack is. Inline, because a spin has few instructions for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the highest address below `end` for an object of that size and alignment.
inline std::byte* aligned_below(std::byte* end, std::size_t size, std::size_t alignment) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(end - size);
  return end - size - (address & (alignment - 1));
}

inline void allocate_result(control_block& block) {
  const body_kind& kind = *block.kind;
  void*& result = large_result_of(block);
  result = nullptr;
  result = ::operator new(kind.result_size, std::align_val_t(kind.result_alignment));
}

/// Lays the fiber's stack out below `top`.
inline void lay_out_stack(control_block& fresh, std::byte* top) noexcept {
  lay_out(fresh.resume_context, aligned_below(top, 0, 16), home_of(fresh).store.first_function,
          &fresh);
  sanitizer::describe(fresh.resume_context.shadow, fresh.runs_on.bottom, fresh.runs_on.size(),
                      true);
}

/// The body stands on the stack.
[[gnu::noinline]] inline void give_stack_now(thread_state& thread, control_block& fresh,
                                             std::size_t stack_size) {
  const body_kind& kind = *fresh.kind;
  thread.give_back_retired_stack();  // it may be large, and memory short
  fresh.runs_on = thread.store.stacks.take(stack_size);
  std::byte* body = aligned_below(fresh.runs_on.top, kind.size, kind.alignment);
  fresh.body = body;
  lay_out_stack(fresh, body);
}

/// Returns: a fiber that begins in the store's `first_function` once it is started.
/// Throws: std::bad_alloc, stack_unavailable; std::invalid_argument for the size of a stack.
inline control_block& make_fiber(thread_state& thread, family& parents, const body_kind& kind,
                                 call_site site, std::size_t stack_size) {
  if (stack_size != thread.settings().stack_size) stack_pool::check_size(stack_size);
  fiber_store& store = thread.store;
  void* storage = store.memory_for_block(thread, thread.time);
  constexpr int references = 2;  // of the handle, and of the thread until the fiber has ended
  control_block& block =
      *::new (storage) control_block(thread, thread.mail(), references, store.next_id(),
                                     thread.reading(), &parents, parents.owner, &kind, site);
  ++thread.mail().blocks;
  try {
    if (!kind.result_is_small) allocate_result(block);
    if (kind.is_small && stack_size <= stack_pool::default_size) {
      store.stacks.promise();
      block.body = small_body_of(block);
      sanitizer::unpoison(block.body, small_body);
    } else {
      give_stack_now(thread, block, stack_size + kind.more_stack);
    }
  } catch (...) {
    store.free(block);
    throw;
  }
  ++block.parent->references;
  return block;
}

}}}  // namespace motet::MOTET_ABI::detail
