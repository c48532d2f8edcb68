// SPDX-License-Identifier: MIT
// See server.hpp.
#include "server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cached_fetch {

namespace {

using namespace std::chrono_literals;
using motet::net::endpoint;
using motet::net::tcp_stream;

constexpr std::size_t longest_value = 255;

/// Returns: whether all of it came before the end.
bool receive(tcp_stream& client, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    const std::size_t size = client.read(buffer);
    if (size == 0) return false;
    buffer = buffer.subspan(size);
  }
  return true;
}

}  // namespace

server::server(std::uint16_t port, manners how)
    : how_(how),
      listener_(endpoint::loopback(port), {.backlog = how.accept_hangs ? 1 : SOMAXCONN}) {}

void server::serve() {
  if (how_.accept_hangs) keep_everybody_waiting();
  ready_ = true;
  listener_.serve([this](tcp_stream client) { answer(std::move(client)); },
                  [](const std::exception_ptr&) {});  // a client that resets is no news
}

void server::answer(tcp_stream client) {
  ++connections_;
  for (;;) {
    std::array<std::byte, 256> key;
    if (!receive(client, std::span(key).first(1))) break;
    const auto size = std::to_integer<std::size_t>(key[0]);
    if (!receive(client, std::span(key).first(size))) break;
    ++requests_;
    if (how_.reply_hangs) continue;  // until the other side closes

    if (how_.reply_after.count() > 0) motet::sleep_for(how_.reply_after);
    std::string reply(reinterpret_cast<const char*>(key.data()), size);
    reply += " world!";
    if (reply.size() > longest_value) return;  // one byte cannot say its length
    reply.insert(reply.begin(), static_cast<char>(reply.size()));
    const auto bytes = std::as_bytes(std::span(reply));
    client.write_all(bytes.first(std::min(bytes.size(), how_.close_after.value_or(bytes.size()))));
    if (how_.close_after) return;
  }
  ++closed_;
}

/// When as many wait to be accepted as may, the kernel does not answer further ones: these are our
/// own, up to the first that is not answered.
void server::keep_everybody_waiting() {
  std::vector<tcp_stream> waiting;
  while (auto one = motet::move_on_after(100ms, [&] { return tcp_stream::connect(where()); })) {
    waiting.push_back(*std::move(one));
  }
  ready_ = true;
  motet::sleep();
}

}  // namespace cached_fetch
