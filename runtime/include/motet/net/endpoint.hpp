// SPDX-License-Identifier: MIT
// The address of a socket: an address and a port of IPv4 or IPv6, or the name of a Unix socket.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
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
  /// Throws: std::invalid_argument if the address is none of IPv4, IPv6 or a Unix socket.
  endpoint(const sockaddr* address, socklen_t length);

  /// Returns: 127.0.0.1 with that port; with port 0 the kernel chooses one at bind(2).
  /// Not a switchpoint.
  static endpoint loopback(std::uint16_t port) noexcept;
  /// Returns: 0.0.0.0, which stands for every IPv4 address of this host, with that port.
  /// Not a switchpoint.
  static endpoint any(std::uint16_t port) noexcept;
  /// Returns: the Unix socket with that path in the file system.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a path that is empty, holds a NUL or is longer than 107
  ///         bytes.
  /// Source: unix(7).
  static endpoint unix_path(std::string_view path);
  /// Returns: the Unix socket with that abstract name, which is in no file system and vanishes with
  ///          the socket; only programs in the same network namespace see it.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a name that is empty or longer than 107 bytes.
  /// Source: unix(7).
  static endpoint unix_abstract(std::string_view name);
  /// Reads "127.0.0.1:80", "[::1]:80" or, with a zone, which is the number or the name of an
  /// interface, "[fe80::1%2]:80"; or, for a Unix socket, "unix:/run/motet.sock", "unix:@abstract".
  /// Host names are not resolved.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument that says what is wrong with the text.
  /// Source: RFC 4007, 11.
  static endpoint parse(std::string_view text);

  /// Returns: the text that parse() reads; "unix:" for a Unix socket without a name.
  /// Not a switchpoint.
  std::string to_string() const;
  /// Returns: the port; 0 for a Unix socket.
  /// Not a switchpoint.
  std::uint16_t port() const noexcept;
  /// Not a switchpoint.
  const sockaddr* address() const noexcept { return &storage_.head; }
  /// Not a switchpoint.
  socklen_t length() const noexcept { return length_; }

  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  static endpoint local_name(std::string_view name, std::size_t begin);
  std::string_view local_name() const noexcept;

  union storage {
    sockaddr head;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_un local;
  };
  storage storage_{.local = {}};  // the largest member, so that all of it is zeroed
  socklen_t length_ = sizeof(sockaddr_in);
};

}}}  // namespace motet::MOTET_ABI::net
