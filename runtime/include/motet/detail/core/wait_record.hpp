// SPDX-License-Identifier: MIT
// One wait, on the stack of the fiber that waits. It is claimed exactly once, by what ends it;
// what is handed over moves only after the claim. Only a shared wait can be claimed by a thread
// other than the fiber's home thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/atomic.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct control_block;

enum class wake_reason : std::uint8_t {
  none,         // the wait has not ended
  handed,       // the awaited event has occurred
  time,         // its own deadline has passed
  interrupted,  // something is pending that the fiber must throw
  idle,         // the main fiber's suspend(): this thread is deadlocked
};

/// What the subject of a wait is, and what ends the wait.
enum class wait_kind : std::uint8_t {
  call,        // the subject is a number, such as a descriptor
  object,      // the subject is the address of the object that is waited for
  lock,        // the same, and `holder` has the mark of the lock's holder
  fiber,       // the end of `target`, a fiber of the same thread
  token,       // of suspend(): its token, once given, gives way to an exception
  idle_token,  // of suspend() in the main fiber: ends when the thread is deadlocked
};

struct wait_record {
  /// `description` and `subject` are for people: "read on fd", 7. A negative subject is left out.
  explicit wait_record(const char* for_what, std::int64_t of_which = -1,
                       wait_kind of_kind = wait_kind::call) noexcept
      : description(for_what), subject(of_which), kind(of_kind) {}

  const char* description;
  std::int64_t subject;
  union {
    /// Where to find the fiber that will end this wait, if one is known; for people, too.
    control_block* const* target = nullptr;
    /// Of a lock: the mark of the holder.
    const atomic<std::uintptr_t>* holder;
  };
  control_block* fiber = nullptr;
  clock::time_point start{};
  bool interruptible = true;
  /// Any thread may claim it, which takes a locked instruction.
  bool shared = false;
  /// An operation whose end has been asked for and is awaited.
  bool cancelling = false;
  wait_kind kind;

  bool of_object() const noexcept { return kind == wait_kind::object || kind == wait_kind::lock; }
  bool for_lock() const noexcept { return kind == wait_kind::lock; }
  bool for_fiber() const noexcept { return kind == wait_kind::fiber; }
  bool for_token() const noexcept { return kind >= wait_kind::token; }
  /// Returns: whether the wait was still open; it ends for this reason then.
  bool claim(wake_reason reason) noexcept {
    wake_reason open = wake_reason::none;
    if (shared) return reason_.compare_exchange_strong(open, reason, std::memory_order_acq_rel);
    return claim_unshared(reason);
  }

  /// The same without a locked instruction: on the home thread, when no other thread can claim.
  [[gnu::always_inline]] bool claim_unshared(wake_reason reason) noexcept {
    if (ended() != wake_reason::none) return false;
    reason_.store(reason, std::memory_order_relaxed);
    return true;
  }

  wake_reason ended() const noexcept { return reason_.load(std::memory_order_relaxed); }

  /// The wait has ended for a reason other than the one it was claimed for, which its fiber has not
  /// seen yet.
  void end_instead(wake_reason reason) noexcept {
    reason_.store(reason, std::memory_order_relaxed);
  }

  /// Reopens it for the same fiber.
  void reopen() noexcept { end_instead(wake_reason::none); }

 private:
  atomic<wake_reason> reason_{wake_reason::none};
};

}}}  // namespace motet::MOTET_ABI::detail
