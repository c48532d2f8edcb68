// SPDX-License-Identifier: MIT
// See network.hpp.
#include "network.hpp"

#include <cstddef>
#include <span>

#include "visit.hpp"

namespace cached_fetch {

namespace {

constexpr std::size_t longest_key = 255;

using motet::net::tcp_stream;

tcp_stream connect(const motet::net::endpoint& server) {
  const pause meanwhile;
  return tcp_stream::connect(server);
}

void send_key(tcp_stream& stream, const std::string& key) {
  const std::string message = static_cast<char>(key.size()) + key;
  const pause meanwhile;
  stream.write_all(std::as_bytes(std::span(message)));
}

void receive(tcp_stream& stream, std::span<char> text) {
  while (!text.empty()) {
    const pause meanwhile;
    const std::size_t size = stream.read(std::as_writable_bytes(text));
    if (size == 0) throw unexpected_end();
    text = text.subspan(size);
  }
}

std::string receive_value(tcp_stream& stream) {
  unsigned char length = 0;
  receive(stream, {reinterpret_cast<char*>(&length), 1});
  std::string value(length, '\0');
  receive(stream, value);
  return value;
}

}  // namespace

std::string network::get(const std::string& key, const motet::net::endpoint& server) {
  if (key.size() > longest_key) throw invalid_key();
  const visit there(threads_);
  log_.add("connect", key);
  tcp_stream stream = connect(server);
  send_key(stream, key);
  log_.add("sent", key);
  std::string value = receive_value(stream);
  log_.add("received", key);
  return value;
}

}  // namespace cached_fetch
