// SPDX-License-Identifier: MIT
// What answers a thread in place of the operating system, besides a backend, while it runs a
// simulation: sockets, names of hosts, and threads for calls that block.
#pragma once

#include <sys/socket.h>

#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls with names of the C library's functions return what those do, and set errno.
class simulated_system {
 public:
  virtual ~simulated_system() = default;
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

  /// An offloaded call waits for a thread.
  /// Throws: a pending interruption.
  virtual void await_offload_thread() = 0;

  /// Returns: that of the calling thread; null if the system answers.
  static simulated_system* present() noexcept;
  /// Null: the system answers again.
  static void set_present(simulated_system* system) noexcept;
};

}}}  // namespace motet::MOTET_ABI::detail
