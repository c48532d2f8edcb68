// SPDX-License-Identifier: MIT
// Stacks for fibers: mapped in slabs, each above a guard, reused last-in first-out. A fiber that
// has not begun is only promised one: that its memory is mapped, and counted.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/detail/platform/stack.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the stack that the kernel, or the thread library, gave this thread.
stack this_threads_stack() noexcept;

/// The stacks of one thread. Stacks of the default size are pooled; a larger one is mapped for
/// itself and goes back to the kernel when its fiber has ended.
class stack_pool {
 public:
  /// An odd number of pages: the busy pages of all stacks have places of their own in what the
  /// processor keeps of the page tables, which is found by the lowest bits of a page's number.
  static constexpr std::size_t stride = std::size_t{33} * 4096;
  /// A frame of 64 KiB would step over a single page.
  static constexpr std::size_t guard = std::size_t{8} * 4096;
  static constexpr std::size_t default_size = stride - guard;
  static constexpr std::size_t largest_size = std::size_t{1} << 30;

  /// With MOTET_DISABLE=stack_reuse a stack that was given back faults until some 1,000 others have
  /// been given back after it, so that code which still uses the stack is found.
  stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// Returns: a stack of at least `size` bytes, of which up to 1 KiB is not usable.
  /// Throws: stack_unavailable.
  stack take(std::size_t size) {
    if (size > default_size) return take_large(size);
    promise();
    return take_promised();
  }
  /// A stack of the default size is kept for a fiber, until take_promised() or release_promise().
  /// Throws: stack_unavailable.
  void promise() {
    if (unpromised_count_ <= 0) [[unlikely]]
      make_more();
    --unpromised_count_;
  }
  stack take_promised() noexcept {
    if (free_count_ == 0) return take_fresh();
    const free_stack last = free_[--free_count_];
    if (return_count_ > free_count_) return_count_ = free_count_;
    if (free_count_ > most_in_cache) __builtin_prefetch(free_[free_count_ - ahead].top - 64, 1);
    return {last.bottom, last.top};
  }
  void release_promise() noexcept { ++unpromised_count_; }
  void give_back(const stack& memory) noexcept {
    if (memory.size() >= stride) {
      unmap_large(memory);
    } else if (quarantine_.empty()) {
      give_back_pooled(memory);
    } else {
      put_into_quarantine(memory);
    }
  }
  /// The same for a stack that is_pooled().
  void give_back_pooled(const stack& memory) noexcept {
    free_[free_count_++] = {memory.bottom, memory.top};
    ++unpromised_count_;
  }
  /// Whether `memory` comes to no harm by being given back: it is neither unmapped nor sealed. So a
  /// fiber that ends may give it back itself, or another one may begin at its top.
  bool is_pooled(const stack& memory) const noexcept {
    return memory.size() < stride && quarantine_.empty();
  }
  /// Returns: how many pooled stacks are mapped.
  std::size_t mapped() const noexcept { return mapped_count_; }
  /// Returns: how many of them have been used, and have not given their memory back.
  std::size_t resident() const noexcept { return handed_out_ - return_count_; }
  /// Gives the memory of some free stacks, those unused for longest, back to the kernel, if more
  /// are free than `warm_count`.
  /// Returns: whether there is more memory to give back.
  bool trim() noexcept { return can_trim() && trim_some(); }

  /// Throws: std::invalid_argument if no stack can have `size` usable bytes.
  static void check_size(std::size_t size);

 private:
  /// Free stacks that keep their memory, some 2 MiB.
  static constexpr std::size_t warm_count = 256;
  /// With more free stacks than this, the top of a stack that will be taken soon is prefetched.
  static constexpr std::size_t most_in_cache = 1024;
  static constexpr std::size_t ahead = 8;

  /// Metadata of a stack, kept above its top.
  struct note {
    unsigned known_as = 0;     // Valgrind's number of the stack
    std::size_t mappings = 0;  // that the guard of a large stack took
  };
  static note& note_of(const stack& memory) noexcept;

  /// A stack, but a trivial type, so that making the array does not touch its memory.
  struct free_stack {
    std::byte* bottom;
    std::byte* top;
  };
  struct sealed {
    stack memory;
    note note_of_stack;
  };

  [[gnu::noinline]] stack take_fresh() noexcept;
  [[gnu::noinline]] stack take_large(std::size_t size);
  [[gnu::noinline]] void unmap_large(const stack& memory) noexcept;
  bool can_trim() const noexcept { return return_count_ + warm_count < free_count_; }
  [[gnu::noinline]] bool trim_some() noexcept;
  [[gnu::noinline]] void put_into_quarantine(const stack& memory) noexcept;
  [[gnu::noinline]] void make_more();
  void map_slab();
  void reserve(std::size_t count);
  void guard_some();
  void guard_some_surely() noexcept;
  void guard_early() noexcept;
  std::size_t ready() const noexcept;
  std::byte* stack_base(std::size_t index) const noexcept;

  const std::size_t stacks_in_slab_;
  std::vector<std::byte*> slabs_;
  std::unique_ptr<free_stack[]> free_;  // has a slot for every pooled stack
  std::size_t capacity_ = 0;            // of free_, in stacks
  std::size_t free_count_ = 0;
  std::size_t return_count_ = 0;         // so many free stacks, from the front, have no memory
  std::ptrdiff_t unpromised_count_ = 0;  // free and ready stacks that are not promised
  bool guards_are_early_;                // made when stacks are promised
  // Prefixes of the sequence of stacks, in the order of the slabs: mapped, guarded, handed
  // out.
  std::size_t mapped_count_ = 0;
  std::size_t guarded_count_ = 0;
  std::size_t handed_out_ = 0;
  std::size_t mappings_ = 0;  // used by the guards
  std::size_t next_colour_ = 0;
  std::vector<sealed> quarantine_;  // a ring; empty without a quarantine
  std::size_t oldest_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
