// SPDX-License-Identifier: MIT
// Whether a call on a descriptor would not wait.
#pragma once

#include <poll.h>

#include <cerrno>
#include <motet/detail/base/abi.hpp>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: whether poll(2) reports one of `events` now. A signal interrupts poll(2) even if it
///          does not wait. Source: poll(2), EINTR.
inline bool is_ready(int fd, short events) noexcept {
  pollfd look{fd, events, 0};
  int count = 0;
  do {
    count = sys::poll(&look, 1, 0);
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

}}}  // namespace motet::MOTET_ABI::detail
