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
  std::string all;
  for (auto each = names.begin(); each != names.end(); ++each) {
    if (!is_token(*each)) throw std::invalid_argument("websocket: bad protocol name: " + *each);
    if (std::find(names.begin(), each, *each) != each) {
      throw std::invalid_argument("websocket: a protocol is given twice: " + *each);
    }
    if (!all.empty()) all += ", ";
    all += *each;
  }
  return all;
}

/// Returns: the values of all headers of this name as one list; std::nullopt without such a header.
inline std::optional<std::string> combined(const fields& headers, std::string_view name) {
  std::optional<std::string> all;
  for (const field each : headers) {
    if (!equal_but_for_case(each.name, name)) continue;
    all = all.has_value() ? *all + ", " + std::string(each.value) : std::string(each.value);
  }
  return all;
}

/// Returns: the first of `known` that the list `offered` contains; empty if none does.
inline std::string chosen_protocol(const std::vector<std::string>& known,
                                   std::string_view offered) {
  for (const std::string& each : known) {
    for (std::string_view left = offered; !left.empty();) {
      if (trimmed(take_before(left, ',')) == each) return each;
    }
  }
  return {};
}

/// Whether `text` has an element, and `is_one` holds for each that is not empty.
template <typename IsOne>
bool is_list(std::string_view text, IsOne is_one) {
  bool has_one = false;
  while (!text.empty()) {
    const std::string_view each = trimmed(take_before(text, ','));
    if (each.empty()) continue;
    if (!is_one(each)) return false;
    has_one = true;
  }
  return has_one;
}

/// Whether `text` is a token, or one in quotes.
inline bool is_parameter_value(std::string_view text) {
  if (!text.starts_with('"')) return is_token(text);
  if (text.size() < 2 || !text.ends_with('"')) return false;
  std::string bare;
  for (std::size_t place = 1; place + 1 < text.size(); ++place) {
    if (text[place] == '\\') ++place;
    bare += text[place];
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
  if (text.ends_with(';') || !is_token(trimmed(take_before(text, ';')))) return false;
  while (!text.empty()) {
    if (!is_parameter(trimmed(take_before(text, ';')))) return false;
  }
  return true;
}

}}}  // namespace motet::MOTET_ABI::http
