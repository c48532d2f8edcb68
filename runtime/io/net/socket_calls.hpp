// SPDX-License-Identifier: MIT
// The calls on sockets that are no operations, because they do not wait: they make, name and
// configure sockets.
#pragma once

#include <sys/socket.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

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
