// SPDX-License-Identifier: MIT
// See http/server/target.hpp.
#include "http/server/target.hpp"

#include <algorithm>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Returns: the value of a digit of base 16; -1 for another character.
int value_of(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

std::optional<target> parse_target(std::string_view text) noexcept {
  if (text == "*") return target{text, {}};
  // A proxy is asked by a whole address, and every server must understand that.
  const std::size_t scheme = text.find("://");
  if (!text.starts_with('/') && scheme != std::string_view::npos) {
    text.remove_prefix(scheme + 3);
    text.remove_prefix(std::min(text.find_first_of("/?"), text.size()));
    if (text.empty()) return target{"/", {}};
    if (text.front() == '?') return target{"/", text.substr(1)};
  }
  if (!text.starts_with('/')) return std::nullopt;
  target found;
  found.path = take_before(text, '?');
  found.query = text;
  return found;
}

bool decode(std::string_view text, bool plus_is_space, std::string& to) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '%') {
      const int high = at + 2 < text.size() ? value_of(text[at + 1]) : -1;
      const int low = at + 2 < text.size() ? value_of(text[at + 2]) : -1;
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
      c = static_cast<char>(high * 16 + low);
      at += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    to.push_back(c);
  }
  return true;
}

std::optional<std::string> parameter_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view value = take_before(query, '&');
    const std::string_view key = take_before(value, '=');
    std::string decoded;
    if (!decode(key, true, decoded) || decoded != name) continue;
    decoded.clear();
    if (decode(value, true, decoded)) return decoded;
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::http
