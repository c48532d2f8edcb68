// SPDX-License-Identifier: MIT
// The fibers of a thread that wait for locks of the C library, in order of arrival, and where its
// locks were locked, for reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/wait_record.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Where a lock was locked last. Notes are overwritten by those of other locks.
struct lock_note {
  const void* address = nullptr;
  const void* site = nullptr;
  std::uint64_t fiber = 0;  // its id
};

/// In the frame of a call. Joins the queue of its lock, and leaves it at the end of its lifetime.
class lock_waiter {
 public:
  lock_waiter(const void* lock, const char* call, thread_state& home) noexcept;
  lock_waiter(const lock_waiter&) = delete;
  lock_waiter& operator=(const lock_waiter&) = delete;
  ~lock_waiter();

  /// Whether no other fiber of the thread has waited longer for the lock.
  bool is_first() const noexcept;
  /// Waits until a fiber of the thread unlocks it, until this waiter becomes the first one, or
  /// until `due`. Nothing interrupts it.
  void await(clock::time_point due) noexcept;

 private:
  friend class lock_waits;

  const void* const address_;
  const char* const call_;
  thread_state& home_;
  wait_record* wait_ = nullptr;  // while it waits
  lock_waiter* next_ = nullptr;
  lock_waiter* previous_ = nullptr;
};

/// Of one thread; usable whenever the thread runs.
class lock_waits {
 public:
  static lock_waits& of_thread() noexcept { return present_; }

  /// Notes where the running fiber has locked.
  void note(const void* address, const void* site, std::uint64_t fiber) noexcept {
    note_of(address) = {address, site, fiber};
  }
  /// Whether a fiber of the thread waits for some lock.
  bool any() const noexcept { return first_ != nullptr; }
  bool is_awaited(const void* address) const noexcept {
    return any() && first_waiter(address) != nullptr;
  }
  /// Called when a fiber has unlocked it.
  void unlocked(const void* address) noexcept {
    if (any()) wake_first(address);
  }
  /// Reports a fiber that waits for itself, or for fibers that wait for it, if `is_held` by one.
  void report_cycle(const void* address, const char* call, const void* site,
                    thread_state& home) noexcept;
  /// Reports a call that cannot wait as a fiber.
  void report_block(const void* address, const char* call, const void* site,
                    thread_state& home) noexcept;

 private:
  friend class lock_waiter;

  lock_note& note_of(const void* address) noexcept {
    return notes_[reinterpret_cast<std::uintptr_t>(address) / 8 % notes_.size()];
  }
  lock_waiter* first_waiter(const void* address) const noexcept;
  void wake_first(const void* address) noexcept;
  bool leads_to(std::uint64_t fiber, const void* address) noexcept;
  void report(const char* rule, const void* address, const char* call, const void* site,
              thread_state& home) noexcept;
  static void forget_in_child() noexcept;
  static const int registered_for_fork;

  [[gnu::tls_model("initial-exec")]] static thread_local constinit lock_waits present_;

  lock_waiter* first_ = nullptr;
  lock_waiter* last_ = nullptr;
  bool reports_ = false;  // options.on_notice may lock, too
  std::array<lock_note, 16> notes_{};
};

}}}  // namespace motet::MOTET_ABI::detail
