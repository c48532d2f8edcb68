// SPDX-License-Identifier: MIT
// The lists in a handshake. Source: RFC 6455, 4.1, 4.3 and 9.1; RFC 9110, 5.3 and 5.6.1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/http/fields.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Returns: the names, separated by commas.
/// Throws: std::invalid_argument for an invalid name, and for one that occurs twice.
inline std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (auto position = names.begin(); position != names.end(); ++position) {
    if (!is_token(*position))
      throw std::invalid_argument("websocket: bad protocol name: " + *position);
    if (std::find(names.begin(), position, *position) != position) {
      throw std::invalid_argument("websocket: a protocol is given twice: " + *position);
    }
    if (!list.empty()) list += ", ";
    list += *position;
  }
  return list;
}

/// Returns: the values of all headers of this name as one list; std::nullopt without such a header.
inline std::optional<std::string> combined(const fields& headers, std::string_view name) {
  std::optional<std::string> list;
  for (const field entry : headers) {
    if (!equal_but_for_case(entry.name, name)) continue;
    list = list.has_value() ? *list + ", " + std::string(entry.value) : std::string(entry.value);
  }
  return list;
}

/// Returns: the first of `protocols` that the list `offer` contains; empty if none does.
inline std::string chosen_protocol(const std::vector<std::string>& protocols,
                                   std::string_view offer) {
  for (const std::string& protocol : protocols) {
    for (std::string_view rest = offer; !rest.empty();) {
      if (trimmed(split_before(rest, ',')) == protocol) return protocol;
    }
  }
  return {};
}

/// Whether `text` has an element, and `is_one` holds for each that is not empty.
template <typename IsOne>
bool is_list(std::string_view text, IsOne is_one) {
  bool has_one = false;
  while (!text.empty()) {
    const std::string_view item = trimmed(split_before(text, ','));
    if (item.empty()) continue;
    if (!is_one(item)) return false;
    has_one = true;
  }
  return has_one;
}

/// Whether `text` is a token, or one in quotes.
inline bool is_parameter_value(std::string_view text) {
  if (!text.starts_with('"')) return is_token(text);
  if (text.size() < 2 || !text.ends_with('"')) return false;
  std::string bare;
  for (std::size_t index = 1; index + 1 < text.size(); ++index) {
    if (text[index] == '\\') ++index;
    bare += text[index];
  }
  return is_token(bare);
}

inline bool is_parameter(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) return is_token(text);
  return is_token(trimmed(text.substr(0, sign))) &&
         is_parameter_value(trimmed(text.substr(sign + 1)));
}

/// Whether `text` is the name of an extension, perhaps with parameters.
inline bool is_extension(std::string_view text) {
  if (text.ends_with(';') || !is_token(trimmed(split_before(text, ';')))) return false;
  while (!text.empty()) {
    if (!is_parameter(trimmed(split_before(text, ';')))) return false;
  }
  return true;
}

/// Headers of a 101 response that a handler must not set.
inline bool is_of_handshake(std::string_view name) noexcept {
  for (const std::string_view header :
       {"connection", "upgrade", "sec-websocket-accept", "sec-websocket-extensions",
        "sec-websocket-protocol", "content-length", "transfer-encoding"}) {
    if (equal_but_for_case(name, header)) return true;
  }
  return false;
}

}}}  // namespace motet::MOTET_ABI::http
