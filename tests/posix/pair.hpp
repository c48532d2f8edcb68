// SPDX-License-Identifier: MIT
// The two ends of a connection of some kind: a socket of one or another family and type, a pipe or
// a terminal.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <motet/io/fd.hpp>
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

struct pair {
  explicit pair(const std::string& kind) {
    std::array<int, 2> ends{-1, -1};
    if (kind == "tcp") {
      ends = over_loopback();
    } else if (kind == "pipe") {
      REQUIRE(::pipe(ends.data()) == 0);
    } else if (kind == "terminal") {
      REQUIRE(::openpty(&ends[1], &ends[0], nullptr, nullptr, nullptr) == 0);
      termios raw{};
      ::tcgetattr(ends[0], &raw);
      ::cfmakeraw(&raw);
      ::tcsetattr(ends[0], TCSANOW, &raw);
    } else {
      const int type = kind == "stream"     ? SOCK_STREAM
                       : kind == "datagram" ? SOCK_DGRAM
                                            : SOCK_SEQPACKET;
      REQUIRE(::socketpair(AF_UNIX, type, 0, ends.data()) == 0);
    }
    reader = motet::fd(ends[0]);
    writer = motet::fd(ends[1]);
  }
  void nonblocking() const {
    for (const int end : {reader.get(), writer.get()})
      ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
  }
  motet::fd reader;
  motet::fd writer;
};

}  // namespace testing
