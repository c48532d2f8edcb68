// SPDX-License-Identifier: MIT
// Parts of a dump as JSON. Source: RFC 8259, 7.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "process/dumps/fiber_frames.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: how many bytes of `text` are one character of UTF-8; 0 if they are none.
/// Source: RFC 3629, 4: no form is longer than needed, and none is half of a surrogate pair.
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

/// Written between quotes; a byte that is no part of UTF-8 as the sign for that.
struct json_string {
  std::string_view text;

  friend std::ostream& operator<<(std::ostream& out, const json_string& is) {
    out << '"';
    for (std::string_view rest = is.text; !rest.empty();) {
      const std::size_t length = length_of_character(rest);
      const auto code = static_cast<unsigned char>(rest.front());
      if (length == 0) {
        out << "\\ufffd";
      } else if (code == '"' || code == '\\') {
        out << '\\' << rest.front();
      } else if (code < 0x20) {
        out << "\\u00" << "0123456789abcdef"[code / 16] << "0123456789abcdef"[code % 16];
      } else {
        out << rest.substr(0, length);
      }
      rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out << '"';
  }
};

struct json_site {
  std::string_view file;
  std::uint32_t line;

  friend std::ostream& operator<<(std::ostream& out, const json_site& is) {
    return out << json_string{std::string(is.file) + ':' + std::to_string(is.line)};
  }
};

struct json_frames {
  std::span<void* const> frames;
  frame_names& names;

  friend std::ostream& operator<<(std::ostream& out, const json_frames& is) {
    out << '[';
    const char* before = "";
    for (const void* each : is.frames) {
      out << std::exchange(before, ", ") << json_string{is.names.of(each)};
    }
    return out << ']';
  }
};

}}}  // namespace motet::MOTET_ABI::detail
