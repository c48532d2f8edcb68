// SPDX-License-Identifier: MIT
#include "greeting.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace {

constexpr std::size_t longest_name = 100;

void serve_client(motet::net::tcp_stream client) {
  motet::reader input(client);
  motet::move_on_after(idle_limit, [&](motet::deadline& limit) {
    while (const std::optional<std::string_view> name = input.until("\n", longest_name)) {
      client.write_all("Hello, " + std::string(*name) + "!\n");
      limit.reset(idle_limit);
    }
  });
}

}  // namespace

void serve_greetings(motet::net::tcp_listener& listener, const std::stop_token& stop) {
  listener.serve({.drain = stop}, serve_client);  // one fiber per client
}
