// SPDX-License-Identifier: MIT
// A path as the kernel takes it.
#pragma once

#include <motet/detail/words/abi.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Throws: std::invalid_argument for a path that holds a NUL, behind which the kernel sees nothing.
inline std::string terminated(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("a path holds a NUL: \"" + std::string(path.data()) + "...\"");
  }
  return std::string(path);
}

}}}  // namespace motet::MOTET_ABI::detail
