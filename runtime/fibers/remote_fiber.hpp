// SPDX-License-Identifier: MIT
// A guest is a fiber that another thread has asked for; that thread is told of the guest's
// beginning and end.
#pragma once

#include <cstdint>
#include <exception>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/job.hpp>

#include "core/mail/remote_wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The wait for a guest's beginning, in the frame of the fiber or thread that waits.
struct remote_start {
  remote_wait completion{"the beginning of a fiber of another thread"};
  handle fiber;
  std::exception_ptr refused;
};

/// The wait for a guest's end, in the frame of the caller, or of the proxy in the parent's place.
struct remote_link {
  enum class progress : std::uint8_t { asked_for, begun, called_off };

  /// Prevents the guest's body from running, or cancels the guest.
  /// Returns: whether the guest has begun.
  bool call_off(const char* reason) noexcept;
  /// Returns: whether the guest's body will not run; false if the guest has begun.
  bool call_off_before_it_begins() noexcept;
  /// Waits for the guest's end; an interruption of the wait cancels the guest, and terminates it as
  /// soon as the grace of the running fiber's own termination is over.
  /// Returns: whether the wait was interrupted.
  bool await_end(const char* reason) noexcept;

  remote_wait completion{"the end of a fiber of another thread"};
  handle fiber;  // the guest, once it has begun
  atomic<progress> stage{progress::asked_for};
  std::exception_ptr refused;
  bool failed = false;  // the guest failed, and no other fiber or thread awaited it
};

/// Whether another thread is to be told of the end of `fiber`.
inline bool has_caller(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part != nullptr && part->caller != nullptr;
}

/// Called when the guest `fiber` is dead, on its thread.
void notify_caller(control_block& fiber, bool failure_is_claimed) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
