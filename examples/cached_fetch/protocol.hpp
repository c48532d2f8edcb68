// SPDX-License-Identifier: MIT
// The protocol: a message is a length of one byte and a text. A client sends a key, the server
// answers with a value.
#pragma once

#include <cstddef>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "sources.hpp"

namespace cached_fetch {

/// Throws: std::invalid_argument if a message cannot hold the key.
inline void check_key(const std::string& key) {
  constexpr std::size_t limit = 255;
  if (key.size() > limit) throw std::invalid_argument("invalid key: more than 255 bytes");
}

/// Switchpoint. Throws: std::system_error.
inline void send_text(motet::net::tcp_stream& stream, const std::string& text) {
  stream.write_all(static_cast<char>(text.size()) + text);
}

/// Switchpoint. Throws: std::system_error; std::runtime_error at an early end.
inline void receive(motet::net::tcp_stream& stream, std::span<char> room) {
  while (!room.empty()) {
    const std::size_t size = stream.read(std::as_writable_bytes(room));
    if (size == 0) throw std::runtime_error("eof");
    room = room.subspan(size);
  }
}

inline std::string receive_text(motet::net::tcp_stream& stream) {
  char length = 0;
  receive(stream, {&length, 1});
  std::string text(static_cast<unsigned char>(length), '\0');
  receive(stream, text);
  return text;
}

class client final : public network {
 public:
  explicit client(motet::net::endpoint server) : server_(server) {}

  std::string get(const std::string& key) override {
    check_key(key);
    auto stream = motet::net::tcp_stream::connect(server_);
    send_text(stream, key);
    return receive_text(stream);
  }

 private:
  motet::net::endpoint server_;
};

}  // namespace cached_fetch
