// SPDX-License-Identifier: MIT
// The path of a Unix socket, which its creator removes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <motet/net/endpoint.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class unix_socket_path {
 public:
  unix_socket_path() noexcept = default;
  /// For a socket just bound to `address`; empty if that is not a path.
  explicit unix_socket_path(const net::endpoint& address);
  unix_socket_path(unix_socket_path&& other) noexcept;
  unix_socket_path& operator=(unix_socket_path&& other) noexcept;
  ~unix_socket_path() { remove(); }

  /// Removes the path, unless it names another file by now, or belongs to the parent process.
  void remove() noexcept;
  /// Gives up ownership; the path stays.
  void forget() noexcept { path_.clear(); }

 private:
  std::string path_;
  dev_t device_ = 0;  // identify the file at the path
  ino_t file_ = 0;
  std::uint32_t made_in_ = 0;
};

/// Binds the socket to `address`. Replaces a path that a terminated program has left behind.
/// Throws: std::system_error that names `address`.
void bind_to(int socket, const net::endpoint& address, const char* description);

}}}  // namespace motet::MOTET_ABI::detail
