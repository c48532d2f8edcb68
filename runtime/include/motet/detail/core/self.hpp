// SPDX-License-Identifier: MIT
// The runtime of this thread. Read by asm at each use: a compiler may keep the address of a
// thread-local, or its value, across a call that returns on another thread.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct thread_core;

/// motet's only thread-local: the thread's runtime; null; or 1, the mark of a runtime that has
/// ended.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit thread_core* motet_self asm(
    MOTET_SYMBOL("motet_self"));

inline std::uintptr_t read_self() noexcept {
  std::uintptr_t value = 0;
#if defined(__x86_64__)
  asm volatile(
      "movq " MOTET_SYMBOL("motet_self") "@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(value));
#elif defined(__aarch64__)
  std::uintptr_t thread = 0;
  asm volatile(
      "mrs %1, tpidr_el0\n\t"
      "adrp %0, :gottprel:" MOTET_SYMBOL("motet_self") "\n\t"
      "ldr %0, [%0, :gottprel_lo12:" MOTET_SYMBOL("motet_self") "]\n\t"
      "ldr %0, [%1, %0]"
      : "=&r"(value), "=&r"(thread));
#else
  value = reinterpret_cast<std::uintptr_t>(*const_cast<thread_core* volatile*>(&motet_self));
#endif
  return value;
}

/// Returns: what no other living thread returns; even, and not 0.
inline std::uintptr_t this_thread_mark() noexcept {
  std::uintptr_t value = 0;
#if defined(__x86_64__)
  asm volatile("movq %%fs:0, %0" : "=r"(value));
#elif defined(__aarch64__)
  asm volatile("mrs %0, tpidr_el0" : "=r"(value));
#else
  value = reinterpret_cast<std::uintptr_t>(const_cast<thread_core* volatile*>(&motet_self));
#endif
#if defined(MOTET_EXPLORED)
  if (explorer::current_controller != nullptr) {
    value += 2 * explorer::current_controller->thread_number();
  }
#endif
  return value;
}

inline constexpr std::uintptr_t ended_mark = 1;

/// Returns: this thread's runtime, or null.
inline thread_core* self_core() noexcept {
  const std::uintptr_t value = read_self();
  return value <= ended_mark ? nullptr : reinterpret_cast<thread_core*>(value);
}

/// Returns: the runtime of the thread on which a fiber finds itself after a switch.
inline thread_core& present_core() noexcept {
  return *reinterpret_cast<thread_core*>(read_self());
}

/// Sets this thread's runtime to `thread`, which may be null or ended_mark.
void set_self(thread_core* thread) noexcept;

/// Starts this thread's runtime.
/// Throws: std::logic_error if it has ended; what making a backend throws.
[[gnu::noinline]] thread_core& begin_here();

/// Returns: this thread's runtime, started now if there was none.
/// Throws: as begin_here().
inline thread_core& here_core() {
  const std::uintptr_t value = read_self();
  if (value <= ended_mark) [[unlikely]]
    return begin_here();
  return *reinterpret_cast<thread_core*>(value);
}

}}}  // namespace motet::MOTET_ABI::detail
