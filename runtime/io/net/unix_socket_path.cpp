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
#include "base/system_calls.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: the path; an empty text for every other address.
const char* path_of(const net::endpoint& address) noexcept {
  const auto* name = reinterpret_cast<const sockaddr_un*>(address.address());
  return name->sun_family == AF_UNIX ? name->sun_path : "";
}

/// Whether the path is a socket that no program has open any more. A socket of another kind asks,
/// so that a program that does listen sees no connection: it is refused with EPROTOTYPE. Source:
/// connect(2), which refuses files that are no sockets as if no program listened.
bool is_abandoned(const net::endpoint& address) noexcept {
  struct stat attributes{};
  if (::lstat(path_of(address), &attributes) != 0 || !S_ISSOCK(attributes.st_mode)) return false;
  const fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && sys::connect(probe.get(), address.address(), address.length()) != 0 &&
         errno == ECONNREFUSED;
}

int bind_once(int socket, const net::endpoint& address) noexcept {
  return faults::call("bind", sockets::bind, socket, address.address(), address.length());
}

}  // namespace

unix_socket_path::unix_socket_path(const net::endpoint& address) {
  struct stat attributes{};
  if (*path_of(address) == '\0' || ::stat(path_of(address), &attributes) != 0) return;
  path_ = path_of(address);
  device_ = attributes.st_dev;
  file_ = attributes.st_ino;
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
  remove();
  path_ = std::move(other.path_);
  device_ = other.device_;
  file_ = other.file_;
  made_in_ = other.made_in_;
  other.forget();
  return *this;
}

void unix_socket_path::remove() noexcept {
  if (path_.empty() || made_in_ != this_process()) return;
  struct stat attributes{};
  if (::stat(path_.c_str(), &attributes) == 0 && attributes.st_dev == device_ &&
      attributes.st_ino == file_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

void bind_to(int socket, const net::endpoint& address, const char* action) {
  if (bind_once(socket, address) == 0) return;
  int error = errno;
  if (error == EADDRINUSE && *path_of(address) != '\0' && is_abandoned(address)) {
    ::unlink(path_of(address));
    if (bind_once(socket, address) == 0) return;
    error = errno;
  }
  throw std::system_error(error, std::system_category(),
                          std::string(action) + " " + address.to_string());
}

}}}  // namespace motet::MOTET_ABI::detail
