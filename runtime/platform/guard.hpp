// SPDX-License-Identifier: MIT
// How memory below a stack is made to fault. The way is chosen once per process, by trying: many
// guards in one process_madvise(2); one guard at a time with MADV_GUARD_INSTALL (in neither way a
// guard needs a mapping, so a million fit); or, before Linux 6.13 and in locked memory, a mapping
// without access for each guard.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

enum class guard_kind { vectored, single, protection };

/// Returns: the best kind of guard that works here.
guard_kind best_guard();

/// Whether the process locks all it maps (mlockall(2), MCL_FUTURE): then slabs must be small.
bool memory_is_locked();

/// Makes `count` ranges of `size` bytes fault, the first at `address` and each `stride` behind the
/// one before.
/// Returns: how many mappings the guards took, to be given back with the memory.
/// Throws: stack_unavailable if the kernel refuses, or too many mappings would be used.
std::size_t install_guards(std::byte* address, std::size_t stride, std::size_t count,
                           std::size_t size);

/// Called when the memory of guards that took `count` mappings has been unmapped.
void give_mappings_back(std::size_t count) noexcept;

/// seal() makes the whole of a stack above its guard fault, and unseal() makes it usable again. The
/// contents are lost. If the kernel refuses, the stack stays as it is.
void seal(std::byte* address, std::size_t size) noexcept;
void unseal(std::byte* address, std::size_t size) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
