// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fetch_test {

namespace {

using namespace std::chrono_literals;
using motet::net::endpoint;
using motet::net::tcp_stream;

constexpr std::size_t longest_value = 255;

/// Returns: whether the buffer is full; not if the client closes first.
bool receive(tcp_stream& client, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    const std::size_t size = client.read(buffer);
    if (size == 0) return false;
    buffer = buffer.subspan(size);
  }
  return true;
}

}  // namespace

server::server(std::uint16_t port, manners conduct)
    : manners_(conduct),
      listener_(endpoint::loopback(port), {.backlog = conduct.accept_hangs ? 1 : SOMAXCONN}) {}

void server::serve() {
  if (manners_.accept_hangs) keep_everybody_waiting();
  ready_ = true;
  listener_.serve([this](tcp_stream client) { answer(std::move(client)); },
                  [](const std::exception_ptr&) {});  // a client may reset its connection
}

void server::answer(tcp_stream client) {
  ++connections_;
  for (;;) {
    std::array<std::byte, 256> key;
    if (!receive(client, std::span(key).first(1))) break;
    const auto size = std::to_integer<std::size_t>(key[0]);
    if (!receive(client, std::span(key).first(size))) break;
    ++requests_;
    if (manners_.reply_hangs) continue;  // until the client closes

    if (manners_.reply_after.count() > 0) motet::sleep_for(manners_.reply_after);
    std::string reply(reinterpret_cast<const char*>(key.data()), size);
    reply += " world!";
    if (reply.size() > longest_value) return;  // one byte cannot hold the length
    reply.insert(reply.begin(), static_cast<char>(reply.size()));
    const auto bytes = std::as_bytes(std::span(reply));
    client.write_all(
        bytes.first(std::min(bytes.size(), manners_.close_after.value_or(bytes.size()))));
    if (manners_.close_after) return;
  }
  ++closures_;
}

/// The kernel answers no client while the queue of the listener is full, so the server fills the
/// queue with connections of its own.
void server::keep_everybody_waiting() {
  std::vector<tcp_stream> queue;
  while (auto peer = motet::move_on_after(100ms, [&] { return tcp_stream::connect(where()); })) {
    queue.push_back(*std::move(peer));
  }
  ready_ = true;
  motet::sleep();
}

}  // namespace fetch_test
