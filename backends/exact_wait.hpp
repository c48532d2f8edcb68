// SPDX-License-Identifier: MIT
// A wait for exactly the events that a wait_fd asks for, where a ring or libev reports fewer or
// more events: an epoll instance for that one descriptor, which is readable when the wait is over.
#pragma once

#include <sys/epoll.h>

#include <cerrno>

#include "attempt.hpp"
#include "base/faults.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: an epoll descriptor, which the caller owns, that is readable when `op`, a wait_fd, is
///          over; or minus an errno value.
/// Source: epoll(7): its masks are those of poll(2).
inline int make_exact_wait(const operation& op) noexcept {
  const int descriptor = faults::call("epoll_create1", ::epoll_create1, EPOLL_CLOEXEC);
  if (descriptor < 0) return -errno;
  epoll_event interest{};
  interest.events = static_cast<unsigned short>(readiness_of(op));
  if (::epoll_ctl(descriptor, EPOLL_CTL_ADD, op.fd, &interest) == 0) return descriptor;
  const int error = errno;
  sys::close(descriptor);
  return -error;
}

}}}  // namespace motet::MOTET_ABI::detail
