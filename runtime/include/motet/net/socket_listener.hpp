// SPDX-License-Identifier: MIT
// The common base of all listeners.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <motet/detail/base/owned.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class socket_listener {
 public:
  /// Not a switchpoint.
  /// Throws: std::system_error.
  net::endpoint local_endpoint() const;

  /// Ends every accept() with bad_file_descriptor, and closes the socket.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error while a fiber of another thread accepts.
  void close();
  /// Ends every accept() as close() does, but leaves the socket open.
  /// Returns: the descriptor, which the caller now owns; empty if the listener was closed.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error while a fiber of another thread accepts.
  fd release();

  /// Returns: the descriptor, which the listener still owns; -1 once closed.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 protected:
  struct state;

  socket_listener() noexcept;
  explicit socket_listener(fd socket);
  socket_listener(socket_listener&&) noexcept;
  socket_listener& operator=(socket_listener&&) noexcept;
  ~socket_listener();

  /// Returns: a descriptor, or minus an errno value. Sets a non-null `address` to the peer's.
  /// Throws: std::logic_error while a fiber of another thread accepts.
  std::int32_t accept_now(sockaddr* address = nullptr, socklen_t* length = nullptr);
  /// The same without waiting; -EAGAIN if there is no connection, or accept(2) would block.
  std::int32_t accept_ready(sockaddr* address, socklen_t* length) noexcept;
  fd accept_fd();

 private:
  owned<state> state_;
};

}}}  // namespace motet::MOTET_ABI::detail
