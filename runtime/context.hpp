// SPDX-License-Identifier: MIT
// One stack and where on it execution goes on; and the switch from one to another.
#pragma once

#include <cstddef>

#include "sanitizers.hpp"

extern "C" {
/// Saves what the ABI says a callee preserves on this stack and its pointer in `*save`, then goes
/// on where `load` was saved. In context/<architecture>.cpp.
void motet_switch_context(void** save, void* load) noexcept;
}

namespace motet::detail {

/// Where a context that is not running goes on.
struct context {
  void* stack_pointer = nullptr;
  [[no_unique_address]] sanitizer::context_state watched;
};

using entry_function = void (*)(void* argument);

/// Lays out a fresh stack that ends at `top` (16-byte aligned) so that the first switch to it calls
/// `entry(argument)`, which must not return.
/// Returns: the stack pointer to switch to.
void* lay_out(void* top, entry_function entry, void* argument) noexcept;

/// Leaves `from`, for ever if `last`, and goes on in `to`. Returns when somebody switches back.
inline void switch_context(context& from, context& to, bool last = false) noexcept {
  sanitizer::before_switch(from.watched, to.watched, last);
  motet_switch_context(&from.stack_pointer, to.stack_pointer);
  sanitizer::after_switch(from.watched);
}

}  // namespace motet::detail
