// SPDX-License-Identifier: MIT
// A chat by WebSockets: what one says, all hear. One that falls far behind misses some of it.
//
// usage: websocket_chat [--port PORT]
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <string_view>

using namespace motet;
using said_by_somebody = local::broadcast<std::string>;

namespace {

/// Says to one client what all say.
void tell(http::websocket& client, said_by_somebody::subscription messages) {
  for (;;) {
    try {
      const std::optional<std::string> message = messages.pop();
      if (!message.has_value()) return;
      client.write(*message);
    } catch (const items_missed& missed) {
      client.write("(" + std::to_string(missed.count()) + " messages were missed)");
    }
  }
}

void chat(http::websocket& client, said_by_somebody& chat_room) {
  group tasks;
  tasks.spin([&] { tell(client, chat_room.subscribe()); });
  while (const std::optional<http::websocket_message> message = client.read()) {
    if (message->is_text) chat_room.push(message->data);
  }
}

}  // namespace

int main(int count, char** words) {
  std::uint16_t port = 8080;
  if (count == 3 && std::string_view(words[1]) == "--port") {
    port = static_cast<std::uint16_t>(std::atoi(words[2]));
  }
  net::tcp_listener listener(net::endpoint::loopback(port));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;

  return run_until_signal([&](const std::stop_token& stop) {
    said_by_somebody chat_room(100);
    http::router routes;
    routes.get("/chat", [&](http::request& request, http::response& answer) {
      http::websocket client = http::websocket::accept(request, answer, {.message = 64 * 1024});
      if (!move_on_when_stopped(stop, [&] { chat(client, chat_room); }))
        client.close(1001, "good night");
    });
    http::serve(listener, {.connections = {.drain = stop}}, routes);
  });
}
