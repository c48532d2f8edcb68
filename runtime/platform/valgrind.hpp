// SPDX-License-Identifier: MIT
// What Valgrind must be told. The functions do nothing if motet was built without its headers.
#pragma once

#include <cstddef>
#include <motet/detail/platform/stack.hpp>

#if defined(MOTET_VALGRIND)
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace valgrind {

/// Returns: whether the program runs under Valgrind; then each stack contains a note about itself.
inline bool is_active() noexcept {
#if defined(MOTET_VALGRIND)
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

/// Returns: whether a tool of Valgrind's follows which memory was written, as Memcheck does;
/// others, which count or time, leave its requests unanswered.
inline bool checks_memory() noexcept {
#if defined(MOTET_VALGRIND)
  char probe = 0;
  return VALGRIND_MAKE_MEM_DEFINED(&probe, sizeof probe) != 0;
#else
  return false;
#endif
}

/// Valgrind takes a change of the stack pointer for a switch only if it knows the stack.
/// Returns: a number for forget_stack().
inline unsigned know_stack([[maybe_unused]] const stack& region) noexcept {
#if defined(MOTET_VALGRIND)
  return VALGRIND_STACK_REGISTER(region.bottom, region.top);
#else
  return 0;
#endif
}

inline void forget_stack([[maybe_unused]] unsigned number) noexcept {
#if defined(MOTET_VALGRIND)
  VALGRIND_STACK_DEREGISTER(number);
#endif
}

/// Tells Valgrind that the kernel has written there without a system call that it could see.
inline void kernel_wrote([[maybe_unused]] void* address,
                         [[maybe_unused]] std::size_t size) noexcept {
#if defined(MOTET_VALGRIND)
  VALGRIND_MAKE_MEM_DEFINED(address, size);
#endif
}

}}}}  // namespace motet::MOTET_ABI::detail::valgrind
