// SPDX-License-Identifier: MIT
// Where a character of UTF-8 ends, in text that may be anything.
#pragma once

#include <array>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct byte_range {
  unsigned char minimum, maximum;
  bool contains(char c) const noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return minimum <= byte && byte <= maximum;
  }
};

/// The characters whose first byte is in `first`. All bytes after the second are in 0x80 to 0xbf.
struct utf8_form {
  byte_range first;
  std::size_t length;
  byte_range second;
};

/// Overlong forms and surrogates are left out.
/// Source: RFC 3629, 4.
inline constexpr std::array<utf8_form, 9> utf8_forms{{
    {{0x00, 0x7f}, 1, {}},
    {{0xc2, 0xdf}, 2, {0x80, 0xbf}},
    {{0xe0, 0xe0}, 3, {0xa0, 0xbf}},
    {{0xe1, 0xec}, 3, {0x80, 0xbf}},
    {{0xed, 0xed}, 3, {0x80, 0x9f}},
    {{0xee, 0xef}, 3, {0x80, 0xbf}},
    {{0xf0, 0xf0}, 4, {0x90, 0xbf}},
    {{0xf1, 0xf3}, 4, {0x80, 0xbf}},
    {{0xf4, 0xf4}, 4, {0x80, 0x8f}},
}};

inline bool has_form(std::string_view text, const utf8_form& form) noexcept {
  constexpr byte_range later{0x80, 0xbf};
  if (text.size() < form.length || !form.first.contains(text.front())) return false;
  if (form.length > 1 && !form.second.contains(text[1])) return false;
  for (std::size_t i = 2; i < form.length; ++i) {
    if (!later.contains(text[i])) return false;
  }
  return true;
}

/// `text` must not be empty.
/// Returns: the number of bytes of the first UTF-8 character in `text`; 0 if it is not valid UTF-8.
inline std::size_t length_of_character(std::string_view text) noexcept {
  for (const utf8_form& form : utf8_forms) {
    if (has_form(text, form)) return form.length;
  }
  return 0;
}

}}}  // namespace motet::MOTET_ABI::detail
