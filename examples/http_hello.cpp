// SPDX-License-Identifier: MIT
// An HTTP server: every request is answered in a fiber of its connection.
//
// usage: http_hello [--port PORT]
//        curl http://127.0.0.1:8080/hello/you
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>

int main(int count, char** words) {
  std::uint16_t port = 8080;
  if (count == 3 && std::string_view(words[1]) == "--port") {
    port = static_cast<std::uint16_t>(std::atoi(words[2]));
  }
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(port));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;

  motet::http::router routes;
  routes.get("/", [](motet::http::request&, motet::http::response& answer) {
    answer.write("Hello, world\n");
  });
  routes.get("/hello/{name}", [](motet::http::request& request, motet::http::response& answer) {
    answer.header("Content-Type", "text/plain; charset=utf-8");
    answer.write("Hello, " + std::string(request.parameter("name")) + "\n");
  });
  routes.post("/echo", [](motet::http::request& request, motet::http::response& answer) {
    std::array<std::byte, 4096> piece;
    while (const std::size_t size = request.read(piece)) answer.write(std::span(piece).first(size));
  });

  return motet::run_until_signal([&](const std::stop_token& stop) {
    motet::http::serve(listener, {.connections = {.drain = stop}}, routes);
  });
}
