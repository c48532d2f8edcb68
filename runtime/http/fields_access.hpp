// SPDX-License-Identifier: MIT
// The raw text of parsed fields, and fields written to the wire.
#pragma once

#include <cstdint>
#include <motet/http/fields.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct fields_access {
  /// For received fields: the complete head that contains them.
  static std::string& text(fields& of) noexcept { return of.text_; }

  static void append(const fields& of, std::string& to) {
    for (const field& each : of)
      to.append(each.name).append(": ").append(each.value).append("\r\n");
  }

  /// `name` and `value` are in text(of).
  static void note(fields& of, std::string_view name, std::string_view value) {
    const char* begin = of.text_.data();
    of.places_.push_back({static_cast<std::uint32_t>(name.data() - begin),
                          static_cast<std::uint32_t>(name.size()),
                          static_cast<std::uint32_t>(value.data() - begin),
                          static_cast<std::uint32_t>(value.size())});
  }
};

}}}  // namespace motet::MOTET_ABI::http
