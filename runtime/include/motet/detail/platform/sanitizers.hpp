// SPDX-License-Identifier: MIT
// Which sanitizer this build uses, and the notifications it needs. Other files use these functions
// and constants instead of the sanitizers' own macros and headers.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

#if defined(MOTET_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(MOTET_TSAN)
#include <sanitizer/tsan_interface.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace sanitizer {

#if defined(MOTET_TSAN)
inline constexpr bool thread = true;
#else
inline constexpr bool thread = false;
#endif

/// Whether one must be told of each stack, and a fault is the sanitizer's to report.
#if defined(MOTET_ASAN) || defined(MOTET_TSAN)
inline constexpr bool enabled = true;
#else
inline constexpr bool enabled = false;
#endif

/// The data that a sanitizer needs for one context.
struct context_state {
#if defined(MOTET_ASAN)
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
#endif
#if defined(MOTET_TSAN)
  void* fiber = nullptr;
  std::uint64_t mask = 0;  // the thread's, while it holds signals back for this context
#endif
};

#if defined(MOTET_TSAN)
/// ThreadSanitizer records a signal in the running fiber, and calls the handler when that fiber
/// next calls an intercepted function: a fiber that waits, or ends, would keep the signal. So
/// recorded signals are handled before the fiber is left, and signals are blocked until another
/// fiber runs. Uses system calls, because pthread_sigmask(3) is intercepted and takes twice as
/// long.
/// Source: sigprocmask(2).
[[gnu::always_inline]] inline void hold_signals(context_state& state) noexcept {
  constexpr std::uint64_t every_signal = ~std::uint64_t{0};
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, &state.mask, sizeof every_signal);
  std::time(nullptr);  // is intercepted
}
[[gnu::always_inline]] inline void let_signals_come(const context_state& state) noexcept {
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &state.mask, nullptr, sizeof state.mask);
}
#endif

/// For memory that motet manages itself: AddressSanitizer is told which parts are in use, and
/// LeakSanitizer to search the memory for pointers.
inline void poison([[maybe_unused]] void* address, [[maybe_unused]] std::size_t size) noexcept {
#if defined(MOTET_ASAN)
  __asan_poison_memory_region(address, size);
#endif
}
inline void unpoison([[maybe_unused]] void* address, [[maybe_unused]] std::size_t size) noexcept {
#if defined(MOTET_ASAN)
  __asan_unpoison_memory_region(address, size);
#endif
}
inline void search([[maybe_unused]] void* address, [[maybe_unused]] std::size_t size) noexcept {
#if defined(MOTET_ASAN)
  __lsan_register_root_region(address, size);
#endif
}
inline void search_no_more([[maybe_unused]] void* address,
                           [[maybe_unused]] std::size_t size) noexcept {
#if defined(MOTET_ASAN)
  __lsan_unregister_root_region(address, size);
#endif
}

/// Describes a context that runs on [bottom, bottom + size); `fresh` if it has not run yet.
inline void describe([[maybe_unused]] context_state& state, [[maybe_unused]] void* bottom,
                     [[maybe_unused]] std::size_t size, [[maybe_unused]] bool fresh) {
#if defined(MOTET_ASAN)
  state.stack_bottom = bottom;
  state.stack_size = size;
  state.fake_stack = nullptr;
#endif
#if defined(MOTET_TSAN)
  // Creating and destroying a TSan fiber both switch to it temporarily.
  hold_signals(state);
  state.fiber = fresh ? __tsan_create_fiber(0) : __tsan_get_current_fiber();
  let_signals_come(state);
#endif
}

/// A spun fiber's context will never run again; its stack may be used for another fiber.
inline void forget([[maybe_unused]] context_state& state, [[maybe_unused]] void* bottom,
                   [[maybe_unused]] std::size_t size) {
#if defined(MOTET_ASAN)
  __asan_unpoison_memory_region(bottom, size);
#endif
#if defined(MOTET_TSAN)
  hold_signals(state);
  __tsan_destroy_fiber(state.fiber);
  let_signals_come(state);
  state.fiber = nullptr;
#endif
}

/// Called just before the switch from `current` (for good, if `last`) to `target`. Inline:
/// otherwise ThreadSanitizer would match one fiber's call of this function with another fiber's
/// return.
[[gnu::always_inline]] inline void before_switch([[maybe_unused]] context_state& current,
                                                 [[maybe_unused]] context_state& target,
                                                 [[maybe_unused]] bool last) {
#if defined(MOTET_ASAN)
  __sanitizer_start_switch_fiber(last ? nullptr : &current.fake_stack, target.stack_bottom,
                                 target.stack_size);
#endif
#if defined(MOTET_TSAN)
  hold_signals(target);
  __tsan_switch_to_fiber(target.fiber, 0);
#endif
}

/// Called just after a switch to `current`.
inline void after_switch([[maybe_unused]] context_state& current) {
#if defined(MOTET_ASAN)
  __sanitizer_finish_switch_fiber(current.fake_stack, nullptr, nullptr);
#endif
#if defined(MOTET_TSAN)
  let_signals_come(current);
#endif
}

}}}}  // namespace motet::MOTET_ABI::detail::sanitizer
