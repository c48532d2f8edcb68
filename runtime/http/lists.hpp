// SPDX-License-Identifier: MIT
// Fields whose value is a list, perhaps on several lines. Source: RFC 9110, 5.3 and 5.6.1.
#pragma once

#include <motet/http/fields.hpp>
#include <optional>
#include <string_view>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Whether a list of tokens has `token`, in any case.
inline bool has_member(const fields& headers, std::string_view name,
                       std::string_view token) noexcept {
  for (const field& entry : headers) {
    if (!equal_but_for_case(entry.name, name)) continue;
    for (std::string_view rest = entry.value; !rest.empty();) {
      if (equal_but_for_case(trimmed(split_before(rest, ',')), token)) return true;
    }
  }
  return false;
}

/// Returns: the value of a field that is no list; nothing if it is absent, or on several lines.
inline std::optional<std::string_view> only_value(const fields& headers,
                                                  std::string_view name) noexcept {
  std::optional<std::string_view> result;
  for (const field& entry : headers) {
    if (!equal_but_for_case(entry.name, name)) continue;
    if (result.has_value()) return std::nullopt;
    result = entry.value;
  }
  return result;
}

}}}  // namespace motet::MOTET_ABI::http
