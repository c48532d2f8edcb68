// SPDX-License-Identifier: MIT
// See io/net/socket_calls.hpp.
#include "io/net/socket_calls.hpp"

#include <cerrno>

#include "base/system_calls.hpp"
#include "platform/simulated_system.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: null if `fd` is the kernel's.
simulated_system* simulation_of(int fd) noexcept {
  simulated_system* const present = simulated_system::present();
  return present != nullptr && present->has(fd) ? present : nullptr;
}

}  // namespace

namespace sockets {

int socket(int family, int kind, int protocol) noexcept {
  simulated_system* const system = simulated_system::present();
  return system != nullptr ? system->socket(family, kind) : ::socket(family, kind, protocol);
}

int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->bind(fd, address, length) : ::bind(fd, address, length);
}

int listen(int fd, int backlog) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->listen(fd, backlog) : ::listen(fd, backlog);
}

int connect_datagrams(int fd, const sockaddr* peer, socklen_t length) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->connect_datagrams(fd, peer, length)
                           : sys::connect(fd, peer, length);
}

int accept_now(int fd, sockaddr* address, socklen_t* length, int flags) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->accept_now(fd, address, length)
                           : sys::accept4(fd, address, length, flags);
}

int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->getsockname(fd, address, length)
                           : ::getsockname(fd, address, length);
}

int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->getpeername(fd, address, length)
                           : ::getpeername(fd, address, length);
}

int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
  return simulation_of(fd) != nullptr ? 0 : ::setsockopt(fd, level, option, value, size);
}

int shutdown(int fd, int direction) noexcept {
  simulated_system* const system = simulation_of(fd);
  return system != nullptr ? system->shutdown(fd, direction) : sys::shutdown(fd, direction);
}

void hand_over(int fd) noexcept {
  if (simulated_system* const system = simulation_of(fd)) system->hand_over(fd);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) noexcept {
  if (simulation_of(fd) == nullptr) return sys::recvmmsg(fd, messages, count, flags, limit);
  errno = EAGAIN;
  return -1;
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
  if (simulation_of(fd) == nullptr) return sys::sendmmsg(fd, messages, count, flags);
  errno = EAGAIN;
  return -1;
}

bool has_input(int fd) noexcept {
  simulated_system* const system = simulation_of(fd);
  if (system != nullptr) return system->has_input(fd);
  char byte = 0;
  return sys::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

}  // namespace sockets

}}}  // namespace motet::MOTET_ABI::detail
