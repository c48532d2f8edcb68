// SPDX-License-Identifier: MIT
// The calls on sockets that are no operations, because they do not wait: they make, name and
// configure sockets. A simulation replaces them for its thread, and answers for its own sockets.
#pragma once

#include <sys/socket.h>

#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Each call returns what the C library's function of its name does, and sets errno.
class socket_calls {
 public:
  virtual ~socket_calls() = default;
  /// Whether `fd` is a simulated socket: only for those the calls below are made.
  virtual bool has(int fd) const noexcept = 0;
  /// The kernel makes sockets of the families that are not simulated.
  virtual int socket(int family, int kind) noexcept = 0;
  virtual int bind(int fd, const sockaddr* address, socklen_t length) noexcept = 0;
  virtual int listen(int fd, int backlog) noexcept = 0;
  virtual int connect_datagrams(int fd, const sockaddr* peer, socklen_t length) noexcept = 0;
  virtual int accept_now(int fd, sockaddr* address, socklen_t* length) noexcept = 0;
  virtual int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept = 0;
  virtual int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept = 0;
  virtual int shutdown(int fd, int direction) noexcept = 0;
  /// The next backend::forget() of `fd` does not mean that it will be closed.
  virtual void hand_over(int fd) noexcept = 0;
  /// Whether a read would return at once, with bytes, the end or an error.
  virtual bool has_input(int fd) noexcept = 0;
  /// Returns: the address of a host, as a text; nothing for an unknown host.
  virtual std::optional<std::string> address_of(std::string_view host) = 0;

  /// Returns: the calling thread's simulation; null if the kernel answers.
  static socket_calls* simulated() noexcept;
  /// Null: the kernel answers again.
  static void simulate(socket_calls* calls) noexcept;
};

/// As the functions of the C library, for the kernel's sockets and for simulated ones.
namespace sockets {

int socket(int family, int kind, int protocol) noexcept;
int bind(int fd, const sockaddr* address, socklen_t length) noexcept;
int listen(int fd, int backlog) noexcept;
/// For a datagram socket, which does not wait.
int connect_datagrams(int fd, const sockaddr* peer, socklen_t length) noexcept;
/// For a listener in non-blocking mode.
int accept_now(int fd, sockaddr* address, socklen_t* length, int flags) noexcept;
int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept;
int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept;
/// Simulated sockets ignore all options.
int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept;
int shutdown(int fd, int direction) noexcept;
/// Before a stream or a listener gives up the descriptor without closing it.
void hand_over(int fd) noexcept;
/// As recvmmsg(2) and sendmmsg(2); simulated sockets move datagrams one by one.
int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) noexcept;
int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;
/// Whether a read would return at once, with bytes, the end or an error.
bool has_input(int fd) noexcept;

}  // namespace sockets

}}}  // namespace motet::MOTET_ABI::detail
