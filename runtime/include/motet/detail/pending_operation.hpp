// SPDX-License-Identifier: MIT
// An operation between its submission and its end.
#pragma once

#include <motet/backend.hpp>
#include <motet/detail/list.hpp>
#include <motet/detail/wait_record.hpp>

namespace motet::inline MOTET_ABI::detail {

class file_call;
struct in_flight_tag;
struct waiter;

/// One operation and the fiber that waits for it, in the frame of that fiber.
struct pending_operation : tagged_link<in_flight_tag> {
  pending_operation(operation& submitted, const char* what) noexcept
      : op(&submitted), wait(what, submitted.fd) {}

  operation* op;
  wait_record wait;
  bool done = false;
  bool closed = false;  // its descriptor is being closed
  wait_record* closer = nullptr;
  file_call* elsewhere = nullptr;  // another thread performs it, not the backend
  waiter* among = nullptr;         // it is one of several things that the fiber waits for
};

}  // namespace motet::inline MOTET_ABI::detail
