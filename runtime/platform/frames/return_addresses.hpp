// SPDX-License-Identifier: MIT
// The frames of a thread where the unwinder cannot be used, or has no tables: the words on its
// stack that look like return addresses. Some may be remnants of calls that have returned. May be
// called in a signal handler.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the words of a stack from `stack_pointer` up to `top` (null: unknown), as many as fit
///          into `buffer`; fewer where the memory ends, none if the kernel forbids the look.
std::span<const std::uintptr_t> read_stack(std::uintptr_t stack_pointer, const void* top,
                                           std::span<std::uintptr_t> buffer) noexcept;

/// Stores `instruction` in `buffer`, and behind it the words that are in a loaded object, behind a
/// call.
std::span<void*> return_addresses(void* instruction, std::span<const std::uintptr_t> words,
                                  std::span<void*> buffer) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
