// SPDX-License-Identifier: MIT
// A path, or another text, as the kernel takes it.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Throws: std::invalid_argument for a text with a NUL, at which the kernel would truncate it.
inline std::string terminated(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("a path or an argument contains a NUL: \"" +
                                std::string(text.data()) + "...\"");
  }
  return std::string(text);
}

}}}  // namespace motet::MOTET_ABI::detail
