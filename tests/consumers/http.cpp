// SPDX-License-Identifier: MIT
// A program of somebody else that serves HTTP, and asks itself.
#include <array>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>

int main() {
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(0));
  motet::group serving;
  serving.spin([&] {
    motet::http::serve(listener, [](motet::http::request&, motet::http::response& answer) {
      answer.header("Connection", "close").write("hello");
    });
  });
  auto peer = motet::net::tcp_stream::connect(listener.local_endpoint());
  peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string all;
  std::array<std::byte, 256> piece;
  while (const std::size_t size = peer.read(piece)) {
    all.append(reinterpret_cast<const char*>(piece.data()), size);
  }
  std::cout << all << '\n';
  return all.ends_with("\r\n\r\nhello") ? 0 : 1;
}
