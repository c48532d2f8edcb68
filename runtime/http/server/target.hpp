// SPDX-License-Identifier: MIT
// What a request is for. Source: RFC 9112, 3.2; RFC 3986.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct target {
  std::string_view authority;  // of an absolute-form target; else empty
  std::string_view path;       // encoded; it begins with a slash, or is "*"
  std::string_view query;      // without the question mark
};

/// Returns: nothing if `text` is neither a path nor "*" nor an http or https URI.
std::optional<target> parse_target(std::string_view text) noexcept;

/// Whether `text` is a host, perhaps with a port, as the Host field has it.
/// Source: RFC 9110, 7.2; RFC 3986, 3.2.2 and 3.2.3.
bool is_authority(std::string_view text) noexcept;

/// Whether `text` is a host and a port, as the target of CONNECT is. Source: RFC 9112, 3.2.3.
bool is_host_and_port(std::string_view text) noexcept;

/// Appends `text`, percent-decoded.
/// Returns: false for "%" without two hexadecimal digits, and for "%00", which no path contains.
bool decode(std::string_view text, bool plus_is_space, std::string& output);

/// Returns: the decoded value of `name` in the query; std::nullopt if it has none.
std::optional<std::string> parameter_of(std::string_view query, std::string_view name);

}}}  // namespace motet::MOTET_ABI::http
