// SPDX-License-Identifier: MIT
// A fiber that somebody on another thread has asked for, who is told of its beginning and its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <motet/detail/heart/cold_part.hpp>
#include <motet/detail/heart/job.hpp>

#include "heart/mail/remote_wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// In the frame of who waits for the beginning.
struct guest_beginning {
  errand known{"the beginning of a fiber of another thread"};
  handle fiber;
  std::exception_ptr refused;
};

/// In the frame of who waits for the end: a caller, or a keeper in the parent's place.
struct guest_link {
  enum class progress : std::uint8_t { asked_for, begun, called_off };

  /// Sees to it that its body does not run, or is cancelled.
  void call_off(const char* reason) noexcept;
  /// Returns: whether its body will not run; false if it has begun.
  bool call_off_before_it_begins() noexcept;
  /// Waits for the end; an interruption cancels the fiber.
  /// Returns: whether it was interrupted.
  bool await_end(const char* reason) noexcept;

  errand over{"the end of a fiber of another thread"};
  handle fiber;  // once it has begun
  std::atomic<progress> reached{progress::asked_for};
  std::exception_ptr refused;
  bool failed = false;  // and nobody there awaited it
};

/// Whether somebody on another thread is to be told of the end of `fiber`.
inline bool is_guest(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && part->caller != nullptr;
}

/// `fiber`, which is a guest, is dead; on its thread.
void tell_guest_over(control_block& fiber, bool somebody_told) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
