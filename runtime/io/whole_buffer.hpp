// SPDX-License-Identifier: MIT
// Moving all of a buffer by calls that may move less.
#pragma once

#include <cstddef>
#include <motet/detail/words/abi.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls `part(rest)`, which returns how much it has moved, until nothing is left, an error comes,
/// or nothing is moved.
/// Returns: how much has been moved.
template <typename Byte, typename Part>
std::size_t move_all(std::span<Byte> buffer, Part part) {
  std::size_t moved = 0;
  while (moved < buffer.size()) {
    const std::size_t more = part(buffer.subspan(moved));
    if (more == 0) break;
    moved += more;
  }
  return moved;
}

/// A write of nothing is a call all the same: it finds out whether the file can be written to.
template <typename Part>
std::size_t write_whole(std::span<const std::byte> buffer, Part part) {
  return buffer.empty() ? part(buffer) : move_all(buffer, part);
}

}}}  // namespace motet::MOTET_ABI::detail
