// SPDX-License-Identifier: MIT
#pragma once

#include <sys/socket.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether `fd` is a socket that listens. Source: socket(7), SO_ACCEPTCONN.
inline bool listens(int fd) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

}}}  // namespace motet::MOTET_ABI::detail
