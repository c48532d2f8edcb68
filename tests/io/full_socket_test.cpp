// SPDX-License-Identifier: MIT
// A send that has to wait for room arrives whole, whatever the verb and the kind of the socket: a
// ring's own second attempt of some loses the bytes.
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <motet/motet.hpp>
#include <string>
#include <system_error>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

enum class way { send, sendmsg, write, writev };

const char* name_of(way verb) {
  switch (verb) {
    case way::send:
      return "send";
    case way::sendmsg:
      return "sendmsg";
    case way::write:
      return "write";
    case way::writev:
      return "writev";
  }
  return "";
}

std::size_t send_by(way verb, int socket, std::string& text) {
  const std::size_t half = text.size() / 2;
  iovec parts[2] = {{text.data(), half}, {text.data() + half, text.size() - half}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  switch (verb) {
    case way::send:
      return io::send(socket, testing::bytes_of(text));
    case way::sendmsg:
      return io::sendmsg(socket, message);
    case way::write:
      return io::write(socket, testing::bytes_of(text));
    case way::writev:
      return io::writev(socket, parts);
  }
  return 0;
}

std::string text_number(int number) {
  return "number " + std::to_string(number) + " " + std::string(40, 'x');
}

/// Two connected sockets, with little room between them.
testing::descriptor_pair sockets(int family, int type, int mode) {
  if (family == AF_UNIX) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, type | mode, 0, ends) == 0);
    const int small = 4096;
    for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    return {ends[0], ends[1]};
  }
  net::tcp_listener listener(net::endpoint::loopback(0));
  auto client = net::tcp_stream::connect(listener.local_endpoint());
  auto server = listener.accept();
  const int small = 4096;
  const int first = client.release().release();
  const int second = server.release().release();
  ::setsockopt(first, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  ::setsockopt(second, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  return {first, second};
}

/// Sends to a reader that begins when there is no room left.
void send_to_slow_reader(way verb, int type, const testing::descriptor_pair& pair) {
  const int count = static_cast<int>(testing::scaled(2'000, 400));
  std::string text;
  for (int i = 0; i < count; ++i) text += text_number(i);
  group sender;
  sender.spin([&] {
    for (int i = 0; i < count; ++i) {
      for (std::string rest = text_number(i); !rest.empty();) {
        const std::size_t part = send_by(verb, pair.first(), rest);
        if (type != SOCK_STREAM) CHECK(part == rest.size());
        rest.erase(0, part);
      }
    }
    io::shutdown(pair.first(), SHUT_WR);
  });
  sleep_for(10ms);
  std::string result;
  std::array<std::byte, 4096> room;
  for (int i = 0; result.size() < text.size(); ++i) {
    const std::size_t size = io::recv(pair.second(), room);
    REQUIRE(size > 0);
    result += testing::text_of(std::span(room).first(size));
    if (i % 20 == 0) sleep_for(200us);
  }
  CHECK(result == text);
  sender.await_all();
}

}  // namespace

TEST_CASE("io::send(), sendmsg(), write() and writev() deliver all to a full socket", "[io]") {
  run([] {
    for (const way verb : {way::send, way::sendmsg, way::write, way::writev}) {
      for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
          CAPTURE(name_of(verb), type, mode);
          send_to_slow_reader(verb, type, sockets(AF_UNIX, type, mode));
        }
      }
      CAPTURE(name_of(verb));
      send_to_slow_reader(verb, SOCK_STREAM, sockets(AF_INET, SOCK_STREAM, 0));
    }
  });
}
