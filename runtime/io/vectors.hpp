// SPDX-License-Identifier: MIT
// Moving all of several buffers by calls that may move less.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls `part(vectors)`, which returns how many bytes it has moved or minus an errno value, until
/// all is moved. Returns: 0, or minus an errno value.
template <typename Part>
std::int32_t move_vectors(std::span<const iovec> buffers, Part part) {
  constexpr std::size_t most_at_once = 64;
  std::array<iovec, most_at_once> window;
  std::size_t offset = 0;  // of the first buffer, or more
  for (;;) {
    while (!buffers.empty() && offset >= buffers.front().iov_len) {
      offset -= buffers.front().iov_len;
      buffers = buffers.subspan(1);
    }
    if (buffers.empty()) return 0;
    const std::size_t count = std::min(buffers.size(), window.size());
    std::copy_n(buffers.begin(), count, window.begin());
    window[0].iov_base = static_cast<std::byte*>(window[0].iov_base) + offset;
    window[0].iov_len -= offset;
    const std::int32_t result = part(std::span<const iovec>(window).first(count));
    if (result <= 0) return result < 0 ? result : -EIO;
    offset += static_cast<std::size_t>(result);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
