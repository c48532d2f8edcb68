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
  static std::string& text(fields& headers) noexcept { return headers.text_; }

  static void append(const fields& headers, std::string& output) {
    for (const field& entry : headers)
      output.append(entry.name).append(": ").append(entry.value).append("\r\n");
  }

  /// `name` and `value` are in text(of).
  static void note(fields& headers, std::string_view name, std::string_view value) {
    const char* begin = headers.text_.data();
    headers.extents_.push_back({static_cast<std::uint32_t>(name.data() - begin),
                                static_cast<std::uint32_t>(name.size()),
                                static_cast<std::uint32_t>(value.data() - begin),
                                static_cast<std::uint32_t>(value.size())});
  }
};

}}}  // namespace motet::MOTET_ABI::http
