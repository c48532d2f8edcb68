// SPDX-License-Identifier: MIT
// A statx(2) that finds everything in the kernel's memory is made at once: a way to another thread
// would take several times as long. No file system is asked that could have to ask a network.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <motet/runtime/backend.hpp>

#include "local_devices.hpp"
#include "owned_descriptor.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Performs statx(2) on an open file. Returns: whether the cached result is complete.
inline bool status_of_open(operation& op, int fd) noexcept {
  constexpr int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(fd, "", flags, op.length, op.status) != 0) return false;
  thread_local local_devices devices;
  return devices.contains(::makedev(op.status->stx_dev_major, op.status->stx_dev_minor));
}

/// Returns: whether the kernel had the answer in its caches; if so, op.result holds it.
/// Source: openat2(2), RESOLVE_CACHED; statx(2), AT_STATX_DONT_SYNC.
inline bool status_from_cache(operation& op) noexcept {
  constexpr int known_flags =
      AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if ((op.flags & ~known_flags) != 0) return false;
  op.result = 0;
  if (*op.path == '\0' && (op.flags & AT_EMPTY_PATH) != 0 && op.fd != AT_FDCWD) {
    return status_of_open(op, op.fd);
  }
  open_how request{};
  request.flags = O_PATH | O_CLOEXEC;
  if ((op.flags & AT_SYMLINK_NOFOLLOW) != 0) request.flags |= O_NOFOLLOW;
  request.resolve = RESOLVE_CACHED;
  const owned_descriptor descriptor{
      static_cast<int>(::syscall(SYS_openat2, op.fd, op.path, &request, sizeof request))};
  return descriptor.number >= 0 && status_of_open(op, descriptor.number);
}

}}}  // namespace motet::MOTET_ABI::detail
