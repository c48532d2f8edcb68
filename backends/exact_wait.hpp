// SPDX-License-Identifier: MIT
// A wait for exactly the events that a wait_fd asks for, where a ring or libev reports fewer or
// more events: an epoll instance for that one descriptor, which is readable when the wait is over.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "attempt.hpp"
#include "base/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: an epoll descriptor, which the caller owns, that is readable when `op`, a wait_fd, is
///          over; or minus an errno value.
/// Source: epoll(7): its masks are those of poll(2).
inline int make_exact_wait(const operation& op) noexcept {
  const int made = faults::call("epoll_create1", ::epoll_create1, EPOLL_CLOEXEC);
  if (made < 0) return -errno;
  epoll_event asked{};
  asked.events = static_cast<unsigned short>(readiness_of(op));
  if (::epoll_ctl(made, EPOLL_CTL_ADD, op.fd, &asked) == 0) return made;
  const int error = errno;
  ::close(made);
  return -error;
}

}}}  // namespace motet::MOTET_ABI::detail
