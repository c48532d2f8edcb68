// SPDX-License-Identifier: MIT
// Who may use a primitive: any thread, one at a time and briefly; or only the thread that came
// first, which then needs no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/jitter.hpp>
#include <motet/detail/self.hpp>
#include <motet/detail/switchpoint.hpp>

namespace motet::inline MOTET_ABI::detail {

/// A lock for a few instructions. Whoever holds it does not switch.
class any_thread {
 public:
  static constexpr bool shared = true;

  void lock() noexcept {
    jitter();
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      contend();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  /// For a destructor.
  void lock_at_end() noexcept { lock(); }

  /// The runtime of this thread, or null. Throws what is pending for the running fiber.
  static thread_core* enter() {
    thread_core* thread = self_core();
    if (thread != nullptr) thread->deliver_now_and_then_looking();
    return thread;
  }

 private:
  void contend() noexcept;

  std::atomic<bool> held_{false};
};

[[noreturn]] void refuse_other_thread();

class one_thread {
 public:
  static constexpr bool shared = false;

  /// Throws: std::logic_error on another thread than before.
  void lock() {
    const std::uintptr_t here = this_thread_mark();
    if (here == first_) [[likely]]
      return;
    if (first_ != 0) refuse_other_thread();
    first_ = here;
  }
  void unlock() noexcept {}
  void lock_at_end() noexcept {}

  /// The runtime of this thread, started if there is none. Throws what is pending.
  static thread_core* enter() {
    thread_core& thread = here_core();
    thread.deliver_now_and_then_looking();
    return &thread;
  }

 private:
  std::uintptr_t first_ = 0;
};

}  // namespace motet::inline MOTET_ABI::detail
