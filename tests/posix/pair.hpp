// SPDX-License-Identifier: MIT
// The two ends of a connection of some kind: a socket of one or another family and type, a pipe or
// a terminal; or one descriptor that is both.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <motet/io/fd.hpp>
#include <stdexcept>
#include <string>

#include "catch.hpp"

namespace testing {

/// Two connected sockets.
inline std::array<int, 2> over_loopback() {
  const motet::fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), generic, length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), generic, &length) == 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::connect(client, generic, length) == 0);
  return {client, ::accept(listener.get(), nullptr, nullptr)};
}

/// Two sockets that send datagrams to each other.
inline std::array<int, 2> over_udp() {
  std::array<int, 2> ends{};
  std::array<sockaddr_in, 2> addresses{};
  for (std::size_t i = 0; i < 2; ++i) {
    socklen_t length = sizeof addresses[i];
    auto* const address = reinterpret_cast<sockaddr*>(&addresses[i]);
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ends[i] = ::socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(::bind(ends[i], address, length) == 0);
    REQUIRE(::getsockname(ends[i], address, &length) == 0);
  }
  for (std::size_t i = 0; i < 2; ++i)
    REQUIRE(::connect(ends[i], reinterpret_cast<sockaddr*>(&addresses[1 - i]),
                      sizeof(sockaddr_in)) == 0);
  return ends;
}

inline std::array<int, 2> of_a_terminal() {
  std::array<int, 2> ends{};
  REQUIRE(::openpty(&ends[1], &ends[0], nullptr, nullptr, nullptr) == 0);
  termios raw{};
  ::tcgetattr(ends[0], &raw);
  ::cfmakeraw(&raw);
  ::tcsetattr(ends[0], TCSANOW, &raw);
  return ends;
}

inline std::array<int, 2> two_sockets(int type) {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, type, 0, ends.data()) == 0);
  return ends;
}

inline std::array<int, 2> two_pipe_ends() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  return ends;
}

/// Each end has a place of its own in the file.
inline std::array<int, 2> of_a_file() {
  std::string path = "/tmp/motet-test-XXXXXX";
  const int writer = ::mkstemp(path.data());
  const int reader = ::open(path.c_str(), O_RDWR);
  ::unlink(path.c_str());
  return {reader, writer};
}

/// A descriptor that is both ends.
inline std::array<int, 2> twice(int fd) {
  return {fd, ::dup(fd)};
}

struct pair {
  explicit pair(const std::string& kind) : pair(ends_of(kind)) {}
  explicit pair(const std::array<int, 2>& ends) : reader(ends[0]), writer(ends[1]) {
    REQUIRE(reader.get() >= 0);
    REQUIRE(writer.get() >= 0);
  }
  static std::array<int, 2> ends_of(const std::string& kind) {
    if (kind == "stream") return two_sockets(SOCK_STREAM);
    if (kind == "datagram") return two_sockets(SOCK_DGRAM);
    if (kind == "seqpacket") return two_sockets(SOCK_SEQPACKET);
    if (kind == "tcp") return over_loopback();
    if (kind == "udp") return over_udp();
    if (kind == "pipe") return two_pipe_ends();
    if (kind == "terminal") return of_a_terminal();
    if (kind == "event") return twice(::eventfd(0, 0));
    if (kind == "file") return of_a_file();
    if (kind == "directory") return twice(::open("/tmp", O_RDONLY | O_DIRECTORY));
    if (kind == "null") return twice(::open("/dev/null", O_RDWR));
    if (kind == "epoll") return twice(::epoll_create1(0));
    throw std::invalid_argument("no pair of kind " + kind);
  }
  void nonblocking() const {
    for (const int end : {reader.get(), writer.get()})
      ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
  }
  motet::fd reader;
  motet::fd writer;
};

}  // namespace testing
