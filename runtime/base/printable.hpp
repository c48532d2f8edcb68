// SPDX-License-Identifier: MIT
// Text from elsewhere, as a fiber's name or the message of a program's exception, within a line of
// ours: without control characters, which could begin another line.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Written to anything that takes a std::string_view, with a control character as \xNN.
struct printable {
  std::string_view text;
  std::string_view escaped = {};  // characters that get a backslash

  template <typename Out>
  friend Out& operator<<(Out& output, const printable& is) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t i = 0; i < is.text.size(); ++i) {
      const auto code = static_cast<unsigned char>(is.text[i]);
      if (code < 0x20 || code == 0x7f) {
        output << std::string_view("\\x") << digits.substr(code / 16, 1)
               << digits.substr(code % 16, 1);
      } else {
        if (is.escaped.find(is.text[i]) != is.escaped.npos) output << std::string_view("\\");
        output << is.text.substr(i, 1);
      }
    }
    return output;
  }

  /// Throws: std::bad_alloc.
  std::string string() const {
    struct appender {
      std::string target;
      appender& operator<<(std::string_view part) {
        target += part;
        return *this;
      }
    } output;
    output << *this;
    return std::move(output.target);
  }
};

/// For text that stands between quotes.
constexpr printable quotable(std::string_view text) noexcept {
  return {text, "\"\\"};
}

}}}  // namespace motet::MOTET_ABI::detail
