// SPDX-License-Identifier: MIT
// An operation between its submission and its end.
#pragma once

#include <motet/detail/base/list.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/runtime/backend.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class file_call;
struct in_flight_tag;
struct thread_core;

/// One operation and the fiber that waits for it, in the frame of that fiber.
struct pending_operation : tagged_link<in_flight_tag> {
  pending_operation(operation& request, const char* description) noexcept
      : op(&request), wait(description, request.fd) {}

  operation* op;
  wait_record wait;
  bool done = false;
  bool closed = false;  // its descriptor is being closed
  wait_record* closer = nullptr;
  file_call* plain_call = nullptr;  // another thread performs it, not the backend
  /// Set if the fiber waits for several things, of which this operation is one: called at its end,
  /// in place of resuming the fiber.
  void (*won)(pending_operation& operation, thread_core& home) noexcept = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
