// SPDX-License-Identifier: MIT
// The path of a Unix socket, which its maker takes away.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <motet/net/endpoint.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class bound_path {
 public:
  bound_path() noexcept = default;
  /// Of a socket that has just been bound to `where`; nothing unless that is a path.
  explicit bound_path(const net::endpoint& where);
  bound_path(bound_path&& other) noexcept;
  bound_path& operator=(bound_path&& other) noexcept;
  ~bound_path() { take_away(); }

  /// Takes the path away, unless it is another file by now, or the parent process's.
  void take_away() noexcept;
  /// Leaves the path where it is.
  void forget() noexcept { path_.clear(); }

 private:
  std::string path_;
  dev_t device_ = 0;  // where the path was, and which file it was
  ino_t file_ = 0;
  std::uint32_t made_in_ = 0;
};

/// Binds the socket to `where`. A path that a program which is gone has left is made anew.
/// Throws: std::system_error that names `where`.
void bind_to(int socket, const net::endpoint& where, const char* what);

}}}  // namespace motet::MOTET_ABI::detail
