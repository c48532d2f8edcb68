// SPDX-License-Identifier: MIT
// What a thread's fibers are made of: control blocks, stacks and numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/body.hpp>
#include <motet/detail/core/family.hpp>
#include <string>
#include <string_view>

#include "core/store/block_pool.hpp"
#include "core/time/timers.hpp"
#include "platform/stack_pool.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

class fiber_store {
 public:
  /// `first`: the first number, which no other thread's fibers or scopes have.
  explicit fiber_store(std::uint64_t first) noexcept;

  stack_pool stacks;
  /// Of each fiber that is given a stack. A thread that counts has another one.
  void (*first_function)(void* block);

  std::uint64_t next_id() noexcept { return next_id_++; }
  /// Returns: how many fibers have been numbered, the main one included.
  std::uint64_t fibers_made() const noexcept { return next_id_ - first_id_; }
  /// Returns: a unique identity for a scope.
  std::uint64_t next_scope() noexcept { return ++last_scope_; }
  std::uint64_t last_scope() const noexcept { return last_scope_; }
  void number_scopes_from(std::uint64_t number) noexcept { last_scope_ = number; }
  /// Returns: the last number that a fiber or a scope here has had.
  std::uint64_t numbers_used() const noexcept { return std::max(next_id_, last_scope_); }

  /// With the first use of a block comes room for its fibers among the runnable ones of `thread`,
  /// and for their timers in `time`.
  /// Throws: std::bad_alloc, stack_unavailable.
  void* memory_for_block(thread_core& thread, timers& time) {
    return blocks_.has_used() ? blocks_.take_used() : memory_for_new_block(thread, time);
  }
  void free(control_block& block) noexcept;
  /// Returns: the capacity for timers that the blocks need.
  std::size_t timers_of_blocks() const noexcept { return blocks_.count() * timers::of_a_fiber; }

  /// The thread ends. Under its mailbox's lock.
  void retire() noexcept { blocks_.retire(); }
  /// Called in a forked child.
  /// The stacks of the parent's other fibers stay promised, or in use, for ever.
  void abandon(control_block& caller) noexcept {
    blocks_.abandon(caller);
    first_id_ = next_id_ - 1;  // the caller is the only fiber
  }

 private:
  [[gnu::noinline]] void* memory_for_new_block(thread_core& thread, timers& time);

  block_pool blocks_;
  std::uint64_t first_id_;
  std::uint64_t next_id_;
  std::uint64_t last_scope_ = 0;
};

/// Gives back a fiber that was made but not started.
void unmake_fiber(control_block& fiber) noexcept;

/// Returns: the fiber's name, or its number if it has none.
std::string label_of(const control_block& fiber);
/// Returns: its name, perhaps empty. On its thread, in a signal handler as well.
std::string_view name_of(const control_block& fiber) noexcept;
/// Returns: the same. Any thread.
std::string copied_name_of(const control_block& fiber);
/// Gives it another name. On its thread.
void rename(control_block& fiber, std::string&& name);

/// Whether anybody but the thread itself refers to a fiber that runs.
inline bool shared(const control_block& fiber) noexcept {
  return fiber.references > 1 || fiber.known_remotely.load(std::memory_order_relaxed);
}
/// In a poll or a switch: gives up a reference, but leaves what is to be destroyed to the reaper.
[[gnu::noinline]] void release_later(control_block& block) noexcept;
/// Frees an unreferenced block, which holds a reference to its parent's block.
/// Returns: the parent's block, to be released in turn; null if there is none on this thread.
control_block* free_one(control_block& fiber) noexcept;
/// Gives up a reference to a block whose thread has ended, and frees what is not referred to then.
void release_after_end(control_block& fiber) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
