// SPDX-License-Identifier: MIT
// Which threads may use a primitive: any thread, under a lock that is held briefly; or only the
// thread that used it first, which then needs no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A lock that is held for a few instructions, or while waits are counted for stats(). Its holder
/// calls no switchpoint.
class shared_policy {
 public:
  static constexpr bool shared = true;

  void lock() noexcept {
    race_point();
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      contend();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  /// lock() for a destructor.
  void lock_at_end() noexcept { lock(); }

  /// Returns: the runtime of this thread, or null.
  /// Throws: a pending interruption.
  static thread_core* enter() {
    thread_core* thread = self_core();
    if (thread != nullptr) thread->deliver();
    return thread;
  }

  /// Called under the lock before a wait. A process's main thread without a runtime starts one, so
  /// that a deadlock is reported to it; the lock is released meanwhile and taken again.
  /// Returns: whether a runtime was started, which is then in `thread`; the caller must look again.
  /// Throws: as begin_here(), with the lock released.
  bool becomes_fiber(thread_core*& thread) {
    if (thread != nullptr) [[likely]]
      return false;
    return begin_on_main_thread(thread);
  }
  /// As enter(), for calls that always wait.
  static thread_core* enter_to_wait() {
    thread_core* thread = enter();
    if (thread == nullptr && waits_first_on_main_thread()) [[unlikely]]
      return &begin_to_wait();
    return thread;
  }

 private:
  void contend() noexcept;
  [[gnu::noinline]] bool begin_on_main_thread(thread_core*& thread);
  [[gnu::noinline]] static bool waits_first_on_main_thread() noexcept;
  [[gnu::noinline]] static thread_core& begin_to_wait();

  atomic<bool> held_{false};
};

[[noreturn]] void refuse_other_thread();

class local_policy {
 public:
  static constexpr bool shared = false;

  /// Throws: std::logic_error on any thread but the first.
  void lock() {
    const std::uintptr_t mark = this_thread_mark();
    if (mark == first_) [[likely]]
      return;
    if (first_ != 0) refuse_other_thread();
    first_ = mark;
  }
  void unlock() noexcept {}
  void lock_at_end() noexcept {}

  /// Returns: this thread's runtime; starts one if there is none.
  /// Throws: a pending interruption.
  static thread_core* enter() {
    thread_core& thread = here_core();
    thread.deliver();
    return &thread;
  }
  static thread_core* enter_to_wait() { return enter(); }
  static constexpr bool becomes_fiber(const thread_core*) noexcept { return false; }

 private:
  std::uintptr_t first_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
