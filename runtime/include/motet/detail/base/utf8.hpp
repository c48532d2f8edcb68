// SPDX-License-Identifier: MIT
// Where a character of UTF-8 ends, in text that may be anything.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the number of bytes of the first UTF-8 character in `text`; 0 if it is not valid UTF-8.
/// Source: RFC 3629, 4: overlong forms and surrogates are invalid.
inline std::size_t length_of_character(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  if (length > 1) {
    const auto second = static_cast<unsigned char>(text[1]);
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}}}  // namespace motet::MOTET_ABI::detail
