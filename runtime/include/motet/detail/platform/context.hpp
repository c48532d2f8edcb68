// SPDX-License-Identifier: MIT
// A context is a stack and the place on it where execution goes on. The switch from one context to
// another is inline, or out of line (-DMOTET_SWITCH_OUT_OF_LINE, and wherever a sanitizer must see
// a call).
#pragma once

#include <motet/detail/platform/sanitizers.hpp>

#if defined(__x86_64__)
#include <motet/detail/platform/context/x86_64.hpp>
#elif defined(__aarch64__)
#include <motet/detail/platform/context/aarch64.hpp>
#else
#error "motet has no switch for this architecture"
#endif

extern "C" {
/// Saves the callee-saved registers of the ABI on this stack, and the stack pointer in `*save`;
/// then resumes the context saved in `load`. In context/<architecture>.cpp.
void motet_switch_context(void** save, void* load) noexcept;
/// The code at which a fresh context begins; it is jumped to, not called.
void motet_enter_context() noexcept;
}

namespace motet { inline namespace MOTET_ABI { namespace detail {

#if defined(MOTET_SWITCH_OUT_OF_LINE) || defined(MOTET_TSAN)
inline constexpr bool switches_inline = false;
#else
inline constexpr bool switches_inline = true;
#endif

/// The saved state of a context that is not running.
struct context : saved_context {
  [[no_unique_address]] sanitizer::context_state shadow;
};

using entry_function = void (*)(void* argument);

/// Lays out a fresh stack that ends at `top` (16-byte aligned) so that the first switch to it,
/// inline or by call, calls `entry(argument)`, which must not return. Both functions are defined
/// beside the assembly that they name: with LTO an archive's list of symbols has only those that
/// the compiler has seen.
void lay_out_for_inline(saved_context& fresh, void* top, entry_function entry,
                        void* argument) noexcept;
void lay_out_for_call(saved_context& fresh, void* top, entry_function entry,
                      void* argument) noexcept;

inline void lay_out(context& fresh, void* top, entry_function entry, void* argument) noexcept {
  if constexpr (switches_inline) {
    lay_out_for_inline(fresh, top, entry, argument);
  } else {
    lay_out_for_call(fresh, top, entry, argument);
  }
}

/// Switches from `current` to `target`, for good if `last`. Returns when `current` is switched to
/// again.
[[gnu::always_inline]] inline void switch_context(context& current, context& target,
                                                  bool last = false) noexcept {
  sanitizer::before_switch(current.shadow, target.shadow, last);
  if constexpr (switches_inline) {
    switch_inline(&current, &target);
  } else {
    motet_switch_context(&current.stack_pointer, target.stack_pointer);
  }
  sanitizer::after_switch(current.shadow);
}

/// Switches to `target` for good.
[[noreturn, gnu::always_inline]] inline void load_context(context& target) noexcept {
  context unused_context;
  sanitizer::before_switch(unused_context.shadow, target.shadow, true);
  if constexpr (switches_inline) {
    load_inline(&target);
  } else {
    motet_switch_context(&unused_context.stack_pointer, target.stack_pointer);
  }
  __builtin_unreachable();
}

}}}  // namespace motet::MOTET_ABI::detail
