// SPDX-License-Identifier: MIT
// See net/endpoint.hpp.
#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <motet/net/endpoint.hpp>
#include <stdexcept>

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

[[noreturn]] void refuse(std::string_view text, const char* reason) {
  throw std::invalid_argument("\"" + std::string(text) + "\" is not an endpoint: " + reason);
}

std::uint16_t parse_port(std::string_view text, std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    refuse(text, "the port must be a number from 0 to 65535");
  }
  return port;
}

/// Removes the zone, with its %, from `host`.
/// Returns: the zone's number; 0 if there is no zone.
std::uint32_t cut_off_zone(std::string_view text, std::string& host) {
  const std::size_t sign = host.find('%');
  if (sign == std::string::npos) return 0;
  const std::string zone = host.substr(sign + 1);
  host.resize(sign);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(zone.data(), zone.data() + zone.size(), number);
  const bool is_number = error == std::errc() && end == zone.data() + zone.size();
  if (is_number) return number;  // 0: no zone
  number = ::if_nametoindex(zone.c_str());
  if (number == 0) refuse(text, "its zone is neither a number nor an interface");
  return number;
}

constexpr std::string_view escape = "./";

/// A path that begins with @ would look like an abstract name, so it is prefixed with "./"; so is a
/// path that looks prefixed.
bool is_escaped(std::string_view path) noexcept {
  while (path.starts_with(escape)) path.remove_prefix(escape.size());
  return path.starts_with('@');
}

std::string_view without_escape(std::string_view path) noexcept {
  if (path.starts_with(escape) && is_escaped(path)) path.remove_prefix(escape.size());
  return path;
}

}  // namespace

endpoint::endpoint() noexcept {
  storage_.v4.sin_family = AF_INET;
}

endpoint::endpoint(const sockaddr* address, socklen_t length) {
  const bool v4 = length >= sizeof(sockaddr_in) && address->sa_family == AF_INET;
  const bool v6 = length >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6;
  const bool local = length >= sizeof(sa_family_t) && address->sa_family == AF_UNIX;
  if (!v4 && !v6 && !local) {
    throw std::invalid_argument("endpoint: the address family is not IPv4, IPv6 or Unix");
  }
  // Of a path of 108 bytes the kernel counts one more, for a NUL. Source: unix(7), BUGS.
  length_ = std::min(length, static_cast<socklen_t>(v4   ? sizeof(sockaddr_in)
                                                    : v6 ? sizeof(sockaddr_in6)
                                                         : sizeof(sockaddr_un)));
  std::memcpy(&storage_, address, length_);
}

endpoint endpoint::unix_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("endpoint: the path of a Unix socket is empty or contains a NUL");
  }
  return local_name(path, 0);
}

endpoint endpoint::unix_abstract(std::string_view name) {
  if (name.empty()) throw std::invalid_argument("endpoint: the name of a Unix socket is empty");
  return local_name(name, 1);
}

/// An abstract name begins with a NUL; a path is followed by one.
endpoint endpoint::local_name(std::string_view name, std::size_t begin) {
  endpoint result;
  if (name.size() >= sizeof result.storage_.local.sun_path) {
    throw std::invalid_argument("endpoint: the name of a Unix socket has " +
                                std::to_string(name.size()) +
                                " bytes; the limit is 107: " + std::string(name));
  }
  result.storage_.local = {};
  result.storage_.local.sun_family = AF_UNIX;
  std::memcpy(result.storage_.local.sun_path + begin, name.data(), name.size());
  result.length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return result;
}

/// A path is perhaps followed by a NUL, perhaps not. Source: unix(7), pathname sockets.
std::string_view endpoint::local_name() const noexcept {
  const char* path = storage_.local.sun_path;
  const std::size_t size = length_ - offsetof(sockaddr_un, sun_path);
  if (size == 0) return {};
  return path[0] == '\0' ? std::string_view(path + 1, size - 1)
                         : std::string_view(path, ::strnlen(path, size));
}

endpoint endpoint::loopback(std::uint16_t port) noexcept {
  endpoint result = any(port);
  result.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return result;
}

endpoint endpoint::any(std::uint16_t port) noexcept {
  endpoint result;
  result.storage_.v4.sin_port = htons(port);
  return result;
}

endpoint endpoint::parse(std::string_view text) {
  if (text.starts_with("unix:@")) return unix_abstract(text.substr(6));
  if (text.starts_with("unix:")) return unix_path(without_escape(text.substr(5)));
  const bool bracketed = !text.empty() && text.front() == '[';
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text, "there is no port");
  if (text.find('\0') != std::string_view::npos) refuse(text, "it contains a NUL");
  std::string host(text.substr(0, colon));
  if (bracketed) {
    if (host.back() != ']') refuse(text, "an IPv6 address ends with ]");
    host = host.substr(1, host.size() - 2);
  }
  const std::uint16_t port = parse_port(text, text.substr(colon + 1));
  endpoint result;
  if (bracketed) {
    result.storage_.v6.sin6_family = AF_INET6;
    result.length_ = sizeof(sockaddr_in6);
    result.storage_.v6.sin6_port = htons(port);
    result.storage_.v6.sin6_scope_id = cut_off_zone(text, host);
    if (::inet_pton(AF_INET6, host.c_str(), &result.storage_.v6.sin6_addr) != 1) {
      refuse(text, "the address is not one of IPv6");
    }
    return result;
  }
  result.storage_.v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &result.storage_.v4.sin_addr) != 1) {
    refuse(text, "the address is not one of IPv4 (IPv6 goes in brackets)");
  }
  return result;
}

std::string endpoint::to_string() const {
  if (storage_.head.sa_family == AF_UNIX) {
    const std::string_view name = local_name();
    const bool abstract = !name.empty() && storage_.local.sun_path[0] == '\0';
    return (abstract ? "unix:@" : is_escaped(name) ? "unix:./" : "unix:") + std::string(name);
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (storage_.head.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text, sizeof text);
    const std::uint32_t number = storage_.v6.sin6_scope_id;
    const std::string zone = number == 0 ? "" : "%" + std::to_string(number);
    return "[" + (text + zone) + "]:" + std::to_string(port());
  }
  ::inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(port());
}

std::uint16_t endpoint::port() const noexcept {
  if (storage_.head.sa_family == AF_UNIX) return 0;
  return ntohs(storage_.head.sa_family == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
  if (a.storage_.head.sa_family == AF_UNIX && b.storage_.head.sa_family == AF_UNIX) {
    const bool same_kind =
        (a.storage_.local.sun_path[0] == '\0') == (b.storage_.local.sun_path[0] == '\0');
    return same_kind && a.local_name() == b.local_name();
  }
  if (a.storage_.head.sa_family != b.storage_.head.sa_family || a.port() != b.port()) return false;
  if (a.storage_.head.sa_family == AF_INET6) {
    const sockaddr_in6& first = a.storage_.v6;
    const sockaddr_in6& second = b.storage_.v6;
    return std::memcmp(&first.sin6_addr, &second.sin6_addr, sizeof first.sin6_addr) == 0 &&
           first.sin6_scope_id == second.sin6_scope_id &&
           first.sin6_flowinfo == second.sin6_flowinfo;
  }
  return a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
}

}}}  // namespace motet::MOTET_ABI::net
