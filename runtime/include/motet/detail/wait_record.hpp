// SPDX-License-Identifier: MIT
// One wait, on the stack of the fiber that waits. It is claimed exactly once, by whoever ends it;
// what is handed over moves only after the claim. Claimed by the fiber's home thread alone: others
// send a post.
#pragma once

#include <cstdint>
#include <motet/clock.hpp>

namespace motet::inline MOTET_ABI::detail {

struct control_block;

enum class wake_reason : std::uint8_t {
  none,         // the wait goes on
  handed,       // what it waited for has come
  time,         // its own deadline has passed
  interrupted,  // something is pending that the fiber must throw
  idle,         // the main fiber's suspend(): nothing else can happen on this thread
};

struct wait_record {
  /// `what` and `subject` are for people: "read on fd", 7. A negative subject is left out.
  explicit wait_record(const char* for_what, std::int64_t of_which = -1) noexcept
      : what(for_what), subject(of_which) {}

  const char* what;
  std::int64_t subject;
  /// Where the fiber stands that ends this wait, if one is known; for people too.
  control_block* const* whom = nullptr;
  control_block* fiber = nullptr;
  clock::time_point since{};
  wake_reason ended = wake_reason::none;
  bool interruptible = true;
  /// The wait of suspend(): its token, once given, gives way to an exception.
  bool for_token = false;
  /// The wait of suspend() in the main fiber.
  bool ends_when_idle = false;
  /// An operation whose end has been asked for and is awaited.
  bool cancelling = false;

  /// Returns: whether the wait was still open; it ends for this reason then.
  bool claim(wake_reason reason) noexcept {
    if (ended != wake_reason::none) return false;
    ended = reason;
    return true;
  }

  /// Opens it again, for the same fiber.
  void reopen() noexcept { ended = wake_reason::none; }
};

}  // namespace motet::inline MOTET_ABI::detail
