// SPDX-License-Identifier: MIT
// The stack of a context that is not running, as return addresses: the unwinder is told that the
// context's last function has called the one that looks. Needs no frame pointers.
#pragma once

#include <motet/detail/platform/context.hpp>
#include <span>

extern "C" {
/// Calls `look(argument)` in a frame whose unwind tables say that its caller is the function that
/// `position` goes on in. In context/<architecture>.cpp.
void motet_look_from(const motet::detail::saved_context* position, void (*look)(void*),
                     void* argument) noexcept;
/// Its end.
void motet_look_from_end() noexcept;
}

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether anything has run in `fiber_context`, which is not running.
bool has_begun(const context& fiber_context) noexcept;

/// Puts the return addresses of `fiber_context`, the innermost first, into `buffer`. The context
/// must have been suspended by a switch and stay so meanwhile.
/// Returns: the part of `buffer` that is used; empty for a context that has not begun.
std::span<void*> parked_frames(const context& fiber_context, std::span<void*> buffer) noexcept;

/// Puts those of the caller into `buffer`, the innermost first.
[[gnu::noinline]] std::span<void*> own_frames(std::span<void*> buffer) noexcept;

/// Where the code of a switch by call keeps what a switch inline keeps in the context. In
/// context/<architecture>.cpp.
saved_context as_saved_inline(const saved_context& saved_by_call) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
