// SPDX-License-Identifier: MIT
// Stack use of fibers by the place where they were spun. One fiber in 64 is measured at its end,
// from the pages that are in memory; before it begins, the pages that earlier fibers have used are
// given back to the kernel. Source: mincore(2), madvise(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/platform/stack.hpp>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Chooses fibers at random distances, 64 on average, so that no pattern of spins is missed.
class stack_sampling {
 public:
  /// Of this thread.
  stack_sampling() noexcept;
  /// Returns: whether the fiber that begins now is chosen.
  bool next() noexcept;

 private:
  std::uint32_t random_;
  std::uint32_t countdown_;
};

/// Returns: whether stacks can be measured here: with pages of 4 KiB, and without a sanitizer.
bool can_measure_stacks() noexcept;

/// The stack of the running fiber, whose first function makes this.
class stack_sample {
 public:
  [[gnu::noinline]] explicit stack_sample(const stack& memory) noexcept;
  /// Called before the fiber, spun at `site`, leaves its stack.
  [[gnu::noinline]] void note(const call_site& site) const noexcept;

 private:
  stack memory_;  // empty if it cannot be measured
};

/// What is known of the fibers spun at one place.
struct stack_use {
  call_site site;
  std::uint64_t samples;
  std::size_t most;  // bytes
};

/// Returns: the places with a sample. Any thread.
/// Throws: std::bad_alloc.
std::vector<stack_use> stack_uses();
/// Called in a forked child.
void forget_stack_uses() noexcept;

}}}  // namespace motet::MOTET_ABI::detail
