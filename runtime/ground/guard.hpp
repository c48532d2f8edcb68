// SPDX-License-Identifier: MIT
// How memory below a stack is made to fault. Chosen once per process, by trying: many guards in one
// process_madvise(2), one by one with MADV_GUARD_INSTALL (neither needs a mapping of its own, so a
// million fit), or, before Linux 6.13 and in locked memory, a range without access for each.
#pragma once

#include <cstddef>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

enum class guard_kind { vectored, single, protection };

/// Returns: the best that works here.
guard_kind best_guard();

/// Whether the process locks all it maps (mlockall(2), MCL_FUTURE): then slabs must be small.
bool memory_is_locked();

/// Makes `count` ranges of `size` bytes fault, the first at `at` and each `stride` behind the last.
/// Returns: how many mappings that took, to be given back with the memory.
/// Throws: stack_unavailable if the kernel refuses, or too many mappings would be used.
std::size_t install_guards(std::byte* at, std::size_t stride, std::size_t count, std::size_t size);

/// The memory of guards that took so many mappings has been unmapped.
void give_mappings_back(std::size_t count) noexcept;

/// Makes the whole of a stack above a guard fault, and not fault again. What was in it is lost. If
/// the kernel refuses, it stays as it is.
void seal(std::byte* at, std::size_t size) noexcept;
void unseal(std::byte* at, std::size_t size) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
