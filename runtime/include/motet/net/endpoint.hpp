// SPDX-License-Identifier: MIT
// An address and a port, of IPv4 or IPv6.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <motet/detail/words/abi.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace net {

class endpoint {
 public:
  /// 0.0.0.0:0.
  /// Not a switchpoint.
  endpoint() noexcept;
  /// Copies the address that a system call has filled in.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if the address is neither of IPv4 nor of IPv6.
  endpoint(const sockaddr* address, socklen_t length);

  /// Returns: 127.0.0.1 with that port; with port 0 the kernel chooses one at bind(2).
  /// Not a switchpoint.
  static endpoint loopback(std::uint16_t port) noexcept;
  /// Returns: 0.0.0.0, which stands for every IPv4 address of this host, with that port.
  /// Not a switchpoint.
  static endpoint any(std::uint16_t port) noexcept;
  /// Reads "127.0.0.1:80", "[::1]:80" or, with a zone, which is the number or the name of an
  /// interface, "[fe80::1%2]:80". Host names are not resolved.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument that says what is wrong with the text.
  /// Source: RFC 4007, 11.
  static endpoint parse(std::string_view text);

  /// Returns: the text that parse() reads.
  /// Not a switchpoint.
  std::string to_string() const;
  /// Not a switchpoint.
  std::uint16_t port() const noexcept;
  /// Not a switchpoint.
  const sockaddr* address() const noexcept { return &any_.head; }
  /// Not a switchpoint.
  socklen_t length() const noexcept;

  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  union storage {
    sockaddr head;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  storage any_{.v6 = {}};  // the largest member: all of it is zero
};

}}}  // namespace motet::MOTET_ABI::net
