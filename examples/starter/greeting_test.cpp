// SPDX-License-Identifier: MIT
// The server runs on a simulated host: no port is opened, and thirty seconds take no time. Each
// seed is another order of events, with other delays and short reads.
#include "greeting.hpp"

#include <chrono>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

namespace {

void require(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

void serve() {
  motet::net::tcp_listener listener(motet::net::endpoint::any(8080));
  serve_greetings(listener, {});
}

void clients_are_greeted(motet::testing::world& world) {
  const motet::testing::host server = world.add("server", serve);
  world.until_idle();
  motet::group clients;
  for (const std::string name : {"Ada", "Grace", "Barbara"}) {
    clients.spin([name] {
      auto connection = motet::net::tcp_stream::connect("server", 8080);
      motet::reader input(connection);
      for (int i = 0; i < 3; ++i) {
        connection.write_all(name + "\n");
        const std::optional<std::string_view> answer = input.until("\n", 200);
        require(answer == "Hello, " + name + "!", "each client is greeted by its own name");
      }
    });
  }
  clients.await_all();
}

void idle_clients_are_disconnected(motet::testing::world& world) {
  const motet::testing::host server = world.add("server", serve);
  world.until_idle();
  const auto begun = motet::clock::now();
  auto connection = motet::net::tcp_stream::connect("server", 8080);
  motet::reader input(connection);
  require(!input.until("\n", 200).has_value(), "the server closes the connection");
  const auto waited = motet::clock::now() - begun;
  require(waited >= idle_limit && waited < idle_limit + std::chrono::seconds(1),
          "the server waits for the idle limit, and no longer");
}

}  // namespace

int main() {
  const int failures = motet::testing::explore(200, clients_are_greeted) +
                       motet::testing::explore(200, idle_clients_are_disconnected);
  return failures == 0 ? 0 : 1;
}
