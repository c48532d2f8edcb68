// SPDX-License-Identifier: MIT
// Parts of a dump as JSON. Source: RFC 8259, 7.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/utf8.hpp>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "observe/dumps/fiber_frames.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Written between quotes; a byte that is no part of UTF-8 as the sign for that.
struct json_string {
  std::string_view text;

  friend std::ostream& operator<<(std::ostream& output, const json_string& is) {
    output << '"';
    for (std::string_view rest = is.text; !rest.empty();) {
      const std::size_t length = length_of_character(rest);
      const auto code = static_cast<unsigned char>(rest.front());
      if (length == 0) {
        output << "\\ufffd";
      } else if (code == '"' || code == '\\') {
        output << '\\' << rest.front();
      } else if (code < 0x20) {
        output << "\\u00" << "0123456789abcdef"[code / 16] << "0123456789abcdef"[code % 16];
      } else {
        output << rest.substr(0, length);
      }
      rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return output << '"';
  }
};

struct json_site {
  std::string_view file;
  std::uint32_t line;

  friend std::ostream& operator<<(std::ostream& output, const json_site& is) {
    return output << json_string{std::string(is.file) + ':' + std::to_string(is.line)};
  }
};

struct json_frames {
  std::span<void* const> frames;
  frame_names& names;

  friend std::ostream& operator<<(std::ostream& output, const json_frames& is) {
    output << '[';
    const char* separator = "";
    for (const void* frame : is.frames) {
      output << std::exchange(separator, ", ") << json_string{is.names.of(frame)};
    }
    return output << ']';
  }
};

}}}  // namespace motet::MOTET_ABI::detail
