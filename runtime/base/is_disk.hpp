// SPDX-License-Identifier: MIT
// Which descriptors are files or block devices: a read from them may have to wait for the device.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether `fd` is a file or a disk: always ready, though its data may not be in memory. A server
/// of files over a network is not asked.
/// Source: statx(2), AT_STATX_DONT_SYNC.
inline bool is_disk(int fd) noexcept {
  struct ::statx status{};
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
         (S_ISREG(status.stx_mode) || S_ISBLK(status.stx_mode));
}

}}}  // namespace motet::MOTET_ABI::detail
