// SPDX-License-Identifier: MIT
// See net/unix_listener.hpp.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <motet/detail/ground/process.hpp>
#include <motet/net/unix_listener.hpp>
#include <system_error>

#include "io/io.hpp"
#include "io/net/serve_loop.hpp"
#include "io/net/socket_listener.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

const char* path_of(const endpoint& where) noexcept {
  const auto* name = reinterpret_cast<const sockaddr_un*>(where.address());
  return name->sun_family == AF_UNIX ? name->sun_path : "";
}

/// Whether the path is a socket on which no program listens any more. A socket of another kind
/// asks, so that a program that does listen sees no connection: it is refused with EPROTOTYPE.
/// Source: connect(2), which refuses files that are no sockets as if no program listened.
bool is_abandoned(const endpoint& where) noexcept {
  struct stat found{};
  if (::lstat(path_of(where), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), where.address(), where.length()) != 0 &&
         errno == ECONNREFUSED;
}

fd listening_on(const endpoint& where, int backlog) {
  try {
    return detail::listening_socket(where, backlog, false);
  } catch (const std::system_error& refused) {
    const bool taken = refused.code() == std::errc::address_in_use;
    if (!taken || *path_of(where) == '\0' || !is_abandoned(where)) throw;
  }
  ::unlink(path_of(where));
  return detail::listening_socket(where, backlog, false);
}

}  // namespace

unix_listener::unix_listener(const endpoint& where, int backlog)
    : socket_listener(listening_on(where, backlog)) {
  remember_path(where);
}

unix_listener::unix_listener(unix_listener&& other) noexcept
    : socket_listener(std::move(other)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      file_(other.file_),
      made_in_(other.made_in_) {}

unix_listener& unix_listener::operator=(unix_listener&& other) noexcept {
  if (this == &other) return *this;
  take_path_away();
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  file_ = other.file_;
  made_in_ = other.made_in_;
  socket_listener::operator=(std::move(other));
  return *this;
}

unix_listener::~unix_listener() {
  close();
}

unix_stream unix_listener::accept() {
  return unix_stream(accept_fd());
}

unix_stream unix_listener::accept(std::error_code& error) noexcept {
  const std::size_t number = detail::quietly(error, [&] { return accept_now(); });
  return error ? unix_stream() : stream_on<unix_stream>(static_cast<int>(number), error);
}

void unix_listener::serve_each(const std::function<void(unix_stream)>& handler,
                               std::function<void(std::exception_ptr)> on_error) {
  serve_loop<unix_stream>([&] { return accept_now(); }, handler, std::move(on_error));
}

void unix_listener::close() {
  socket_listener::close();
  take_path_away();
}

fd unix_listener::release() {
  fd left = socket_listener::release();
  path_.clear();
  return left;
}

void unix_listener::remember_path(const endpoint& where) {
  struct stat made{};
  if (*path_of(where) == '\0' || ::stat(path_of(where), &made) != 0) return;
  path_ = path_of(where);
  device_ = made.st_dev;
  file_ = made.st_ino;
  made_in_ = detail::this_process();
}

void unix_listener::take_path_away() noexcept {
  if (path_.empty() || made_in_ != detail::this_process()) return;
  struct stat found{};
  if (::stat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == file_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}}}  // namespace motet::MOTET_ABI::net
