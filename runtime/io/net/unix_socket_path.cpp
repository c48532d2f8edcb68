// SPDX-License-Identifier: MIT
// See motet/detail/io/unix_socket_path.hpp.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/io/fd.hpp>
#include <system_error>
#include <utility>

#include "base/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: the path; an empty text for every other address.
const char* path_of(const net::endpoint& where) noexcept {
  const auto* name = reinterpret_cast<const sockaddr_un*>(where.address());
  return name->sun_family == AF_UNIX ? name->sun_path : "";
}

/// Whether the path is a socket that no program has open any more. A socket of another kind asks,
/// so that a program that does listen sees no connection: it is refused with EPROTOTYPE. Source:
/// connect(2), which refuses files that are no sockets as if no program listened.
bool is_abandoned(const net::endpoint& where) noexcept {
  struct stat found{};
  if (::lstat(path_of(where), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), where.address(), where.length()) != 0 &&
         errno == ECONNREFUSED;
}

int bind_once(int socket, const net::endpoint& where) noexcept {
  return faults::call("bind", ::bind, socket, where.address(), where.length());
}

}  // namespace

unix_socket_path::unix_socket_path(const net::endpoint& where) {
  struct stat made{};
  if (*path_of(where) == '\0' || ::stat(path_of(where), &made) != 0) return;
  path_ = path_of(where);
  device_ = made.st_dev;
  file_ = made.st_ino;
  made_in_ = this_process();
}

unix_socket_path::unix_socket_path(unix_socket_path&& other) noexcept
    : path_(std::move(other.path_)),
      device_(other.device_),
      file_(other.file_),
      made_in_(other.made_in_) {
  other.forget();
}

unix_socket_path& unix_socket_path::operator=(unix_socket_path&& other) noexcept {
  if (this == &other) return *this;
  take_away();
  path_ = std::move(other.path_);
  device_ = other.device_;
  file_ = other.file_;
  made_in_ = other.made_in_;
  other.forget();
  return *this;
}

void unix_socket_path::take_away() noexcept {
  if (path_.empty() || made_in_ != this_process()) return;
  struct stat found{};
  if (::stat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == file_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

void bind_to(int socket, const net::endpoint& where, const char* what) {
  if (bind_once(socket, where) == 0) return;
  int error = errno;
  if (error == EADDRINUSE && *path_of(where) != '\0' && is_abandoned(where)) {
    ::unlink(path_of(where));
    if (bind_once(socket, where) == 0) return;
    error = errno;
  }
  throw std::system_error(error, std::system_category(),
                          std::string(what) + " " + where.to_string());
}

}}}  // namespace motet::MOTET_ABI::detail
