// SPDX-License-Identifier: MIT
// See http/server/target.hpp.
#include "http/server/target.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Returns: the value of a digit of base 16; -1 for another character.
int value_of(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool starts_with_scheme(std::string_view text, std::string_view scheme) noexcept {
  return text.size() > scheme.size() && equal_but_for_case(text.substr(0, scheme.size()), scheme);
}

/// Cuts "http://" and the authority off.
/// Returns: the authority; empty if `text` is no such URI.
std::string_view cut_off_authority(std::string_view& text) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!starts_with_scheme(text, scheme)) continue;
    text.remove_prefix(scheme.size());
    const std::size_t end = std::min(text.find_first_of("/?"), text.size());
    const std::string_view authority = text.substr(0, end);
    text.remove_prefix(end);
    return authority;
  }
  return {};
}

/// Whether each character may stand in a name of RFC 3986's, or is part of "%41".
bool is_registered_name(std::string_view text) noexcept {
  constexpr std::string_view extra_characters = "-._~!$&'()*+,;=";
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char c = text[index];
    const char letter = lower(c);
    if (c == '%') {
      if (index + 2 >= text.size() || value_of(text[index + 1]) < 0 ||
          value_of(text[index + 2]) < 0)
        return false;
      index += 2;
    } else if (!is_digit(c) && (letter < 'a' || letter > 'z') &&
               extra_characters.find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

bool is_address_of_6(std::string_view text) noexcept {
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool is_port(std::string_view text) noexcept {
  constexpr std::uint64_t highest = 65'535;
  const std::optional<std::uint64_t> number = number_of(text);
  return text.empty() || (number.has_value() && *number <= highest);
}

}  // namespace

std::optional<target> parse_target(std::string_view text) noexcept {
  target result;
  if (text == "*") {
    result.path = text;
    return result;
  }
  if (text.find('#') != std::string_view::npos) return std::nullopt;
  if (!text.starts_with('/')) {
    // A proxy is asked by a whole URI, and every server must understand that.
    result.authority = cut_off_authority(text);
    const bool has_host = !result.authority.empty() && !result.authority.starts_with(':');
    if (!has_host || !is_authority(result.authority)) return std::nullopt;
  }
  result.path = split_before(text, '?');
  if (result.path.empty()) result.path = "/";
  result.query = text;
  return result;
}

bool is_authority(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || !is_address_of_6(text.substr(1, end - 1))) return false;
    text.remove_prefix(end + 1);
    return text.empty() || (text.starts_with(':') && is_port(text.substr(1)));
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view port = text.substr(std::min(colon + 1, text.size()));
  return is_registered_name(text.substr(0, colon)) && is_port(port);
}

bool is_host_and_port(std::string_view text) noexcept {
  const bool has_both = !text.starts_with(':') && !text.ends_with(':') && !text.ends_with(']');
  return has_both && text.find(':') != std::string_view::npos && is_authority(text);
}

namespace {

/// Returns: the character that "%41" at the start of `text` encodes; std::nullopt for "%00" and for
///          anything else.
std::optional<char> percent_decoded(std::string_view text) noexcept {
  if (text.size() < 3) return std::nullopt;
  const int high = value_of(text[1]);
  const int low = value_of(text[2]);
  if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

bool decode(std::string_view text, bool plus_is_space, std::string& output) {
  for (std::size_t index = 0; index < text.size(); ++index) {
    char c = text[index];
    if (c == '%') {
      const std::optional<char> byte = percent_decoded(text.substr(index));
      if (!byte.has_value()) return false;
      c = *byte;
      index += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    output.push_back(c);
  }
  return true;
}

std::optional<std::string> parameter_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view value = split_before(query, '&');
    const std::string_view key = split_before(value, '=');
    std::string result;
    if (!decode(key, true, result) || result != name) continue;
    result.clear();
    if (decode(value, true, result)) return result;
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::http
