// SPDX-License-Identifier: MIT
// Whether this process is in a time namespace that shifts the monotonic clock. A ring compares
// absolute deadlines with the kernel's own clock: shifted ones would fire immediately, or never.
#pragma once

#include <fcntl.h>

#include <array>
#include <cstdio>
#include <motet/detail/base/abi.hpp>

#include "base/system_calls.hpp"
#include "owned_descriptor.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Source: time_namespaces(7), /proc/pid/timens_offsets: "monotonic SECONDS NANOSECONDS" first.
inline bool clock_has_offset() noexcept {
  std::array<char, 128> text{};
  const owned_descriptor file{sys::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC)};
  const ssize_t size = sys::read(file.number, text.data(), text.size() - 1);
  long long seconds = 0;
  long nanoseconds = 0;
  if (size <= 0) return false;
  return std::sscanf(text.data(), "monotonic %lld %ld", &seconds, &nanoseconds) == 2 &&
         (seconds != 0 || nanoseconds != 0);
}

}}}  // namespace motet::MOTET_ABI::detail
