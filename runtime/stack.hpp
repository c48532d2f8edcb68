// SPDX-License-Identifier: MIT
// Stacks for fibers: mapped in slabs, each above a guard, reused last-in first-out.
#pragma once

#include <cstddef>
#include <vector>

namespace motet::detail {

/// One stack; [bottom, top) is usable, what is below `bottom` faults.
struct stack {
  std::byte* bottom = nullptr;
  std::byte* top = nullptr;
  bool pooled = false;
  unsigned known_as = 0;  // to Valgrind

  std::size_t size() const noexcept { return static_cast<std::size_t>(top - bottom); }
};

/// Returns: the stack that the kernel, or the thread library, gave this thread.
stack this_threads_stack() noexcept;

/// The stacks of one thread. Stacks of the default size are pooled; a larger one is mapped for
/// itself and goes back to the kernel when its fiber has ended.
class stack_pool {
 public:
  static constexpr std::size_t stride = 128 * 1024;
  /// A quarter of the stride: a frame of 64 KiB would step over a single page.
  static constexpr std::size_t guard = stride / 4;
  static constexpr std::size_t default_size = stride - guard;
  static constexpr std::size_t largest_size = std::size_t{1} << 30;

  stack_pool() = default;
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// Returns: a stack of at least `size` usable bytes.
  /// Throws: stack_unavailable.
  stack take(std::size_t size);
  void give_back(const stack& used) noexcept;

  /// Throws: std::invalid_argument if no stack can have `size` usable bytes.
  static void check_size(std::size_t size);

 private:
  static constexpr std::size_t stacks_a_slab = 64;

  void map_slab();

  std::vector<std::byte*> slabs_;
  std::vector<stack> free_;    // has room for every stack of every slab
  std::size_t unguarded_ = 0;  // stacks of the last slab that were not handed out yet
  std::size_t next_colour_ = 0;
};

}  // namespace motet::detail
