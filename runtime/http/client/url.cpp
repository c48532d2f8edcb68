// SPDX-License-Identifier: MIT
// See http/client/url.hpp.
#include "http/client/url.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::uint16_t usual_port(bool is_secure) noexcept {
  return is_secure ? 443 : 80;
}

[[noreturn]] void refuse(std::string_view text) {
  throw std::invalid_argument("not an http or https URL: '" + std::string(text) + "'");
}

bool starts_with_scheme(std::string_view text, std::string_view scheme) noexcept {
  return equal_but_for_case(text.substr(0, scheme.size()), scheme);
}

/// A space or a control character would end the line that it is written to.
bool has_only_visible(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Returns: `reference` with spaces and bytes beyond ASCII as "%20": servers forget to.
std::string with_only_visible(std::string_view reference) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  for (const char c : reference) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ' || byte > 0x7f) {
      result += {'%', digits[byte >> 4], digits[byte & 0xf]};
    } else {
      result += c;
    }
  }
  return result;
}

/// Returns: `path` without "." and ".." parts. Source: RFC 3986, 5.2.4.
std::string without_dots(std::string_view path) {
  std::string result;
  path.remove_prefix(1);
  for (bool has_more = true; has_more;) {
    const std::string_view part = path.substr(0, path.find('/'));
    has_more = part.size() < path.size();
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == "..") result.resize(result.empty() ? 0 : result.rfind('/'));
    const bool is_dots = part == "." || part == "..";
    if (!is_dots) result.append("/").append(part);
    if (is_dots && !has_more) result.append("/");
  }
  return result;
}

/// Returns: the fragment, with its number sign; empty if `text` has none.
std::string_view cut_off_fragment(std::string_view& text) noexcept {
  const std::size_t position = std::min(text.find('#'), text.size());
  const std::string_view fragment = text.substr(position);
  text = text.substr(0, position);
  return fragment;
}

/// Returns: what `reference`, which has neither scheme nor host, stands for beside `target`.
std::string resolved(std::string_view reference, const std::string& target) {
  const std::size_t query = std::min(target.find('?'), target.size());
  const std::string_view path = reference.substr(0, reference.find('?'));
  const std::string_view behind_path = reference.substr(path.size());
  std::string result = target;
  if (path.starts_with('/')) {
    result = without_dots(path);
  } else if (!path.empty()) {
    const std::string base = target.substr(0, target.rfind('/', query) + 1);
    result = without_dots(base + std::string(path));
  } else if (!behind_path.empty()) {
    result = target.substr(0, query);
  }
  return result.append(behind_path);
}

/// Returns: 1 to 65535; std::nullopt for anything else.
std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
  const std::optional<std::uint64_t> port = number_of(text);
  if (port.value_or(0) == 0 || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

/// Sets the host and the port of `result` to those of "host", "host:port" or "[address]:port".
/// Returns: false if `authority` is none of these.
bool set_authority(url& result, std::string_view authority) {
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return false;
  const std::size_t colon = authority.find(':', bracket);
  result.host = bracket > 0 ? authority.substr(1, bracket - 1) : authority.substr(0, colon);
  result.port = usual_port(result.is_secure);
  if (result.host.empty()) return false;
  if (colon == std::string_view::npos) return bracket == 0 || bracket + 1 == authority.size();
  const std::optional<std::uint16_t> port = port_of(authority.substr(colon + 1));
  result.port = port.value_or(0);
  return port.has_value();
}

}  // namespace

url url::parse(std::string_view text) {
  const std::string_view whole = text;
  url result;
  result.is_secure = starts_with_scheme(text, "https://");
  if (!result.is_secure && !starts_with_scheme(text, "http://")) refuse(whole);
  text.remove_prefix(result.is_secure ? 8 : 7);
  result.fragment = cut_off_fragment(text);
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  const std::string_view authority = text.substr(0, end);
  text.remove_prefix(end);
  if (authority.find('@') != std::string_view::npos || !has_only_visible(whole)) refuse(whole);
  if (!set_authority(result, authority)) refuse(whole);
  result.target = text.starts_with('/') ? std::string(text) : '/' + std::string(text);
  return result;
}

url url::resolve(std::string_view text) const {
  const std::string visible_text = with_only_visible(text);
  std::string_view reference = visible_text;
  const std::string_view own_fragment = cut_off_fragment(reference);
  if (!has_only_visible(reference)) refuse(visible_text);
  url result = *this;
  if (reference.find(':') < reference.find_first_of("/?")) {
    result = parse(reference);
  } else if (reference.starts_with("//")) {
    result = parse((is_secure ? "https:" : "http:") + std::string(reference));
  } else {
    result.target = resolved(reference, target);
    result.fragment.clear();
  }
  if (own_fragment.empty()) {
    result.fragment = fragment;
  } else if (has_only_visible(own_fragment)) {
    result.fragment = own_fragment;
  }
  return result;
}

std::string url::host_field() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  std::string text = is_v6 ? '[' + host + ']' : host;
  if (port != usual_port(is_secure)) text += ':' + std::to_string(port);
  return text;
}

std::string url::origin() const {
  return (is_secure ? "https://" : "http://") + host_field();
}

std::string url::text() const {
  return origin() + target + fragment;
}

}}}  // namespace motet::MOTET_ABI::http
