// SPDX-License-Identifier: MIT
// Plain sockets and descriptor counts, made without a word to motet.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <motet/io/fd.hpp>
#include <stdexcept>
#include <string>

namespace testing {

inline sockaddr_in loopback_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline std::uint16_t port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("getsockname");
  }
  return ntohs(address.sin_port);
}

inline motet::fd make_tcp_socket(int flags = 0) {
  motet::fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!socket) throw std::runtime_error("socket");
  return socket;
}

/// Listens on a port that the kernel chooses.
inline motet::fd make_listener(int flags = 0, int backlog = 1024) {
  motet::fd socket = make_tcp_socket(flags);
  const sockaddr_in address = loopback_address(0);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    throw std::runtime_error("listen");
  }
  return socket;
}

/// Connects to a listener on this host; a blocking call that the kernel answers by itself.
inline motet::fd connect_to(std::uint16_t port) {
  motet::fd socket = make_tcp_socket();
  const sockaddr_in address = loopback_address(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("connect");
  }
  return socket;
}

/// Returns: a port where nobody listens.
inline std::uint16_t unused_port() {
  motet::fd listener = make_tcp_socket();
  const sockaddr_in address = loopback_address(0);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("bind");
  }
  return port_of(listener.get());
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

inline bool ready_now(int fd, short events) {
  pollfd look{fd, events, 0};
  return ::poll(&look, 1, 0) > 0;
}

/// Reads what there is now, without waiting and without a lasting change of the descriptor's mode.
inline std::string take_all(int fd) {
  std::string text;
  std::array<char, 4096> part;
  while (ready_now(fd, POLLIN)) {
    const ssize_t size = ::read(fd, part.data(), part.size());
    if (size <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

/// Writes until there is no room, whatever the descriptor's mode, which it has again afterwards.
/// Returns: how many bytes went in.
inline std::size_t fill(int fd) {
  const int mode = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, mode | O_NONBLOCK);
  const std::string block(4096, 'f');
  std::size_t total = 0;
  for (std::size_t size = block.size(); size > 0;) {
    const ssize_t count = ::write(fd, block.data(), size);
    if (count > 0) {
      total += static_cast<std::size_t>(count);
    } else {
      size /= 2;
    }
  }
  ::fcntl(fd, F_SETFL, mode);
  return total;
}

}  // namespace testing
