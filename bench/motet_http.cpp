// SPDX-License-Identifier: MIT
// The HTTP server of compare_http.py with motet: a text at /hello, and files below a directory.
//
// usage: motet_http PORT DIRECTORY
#include <cstdio>
#include <cstdlib>
#include <motet/http.hpp>
#include <motet/motet.hpp>

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: motet_http PORT DIRECTORY\n");
    return 2;
  }
  motet::net::tcp_listener listener(
      motet::net::endpoint::loopback(static_cast<std::uint16_t>(std::atoi(words[1]))));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  motet::http::router routes;
  routes.get("/hello", [](motet::http::request&, motet::http::response& answer) {
    answer.write("Hello, world\n");
  });
  routes.get("/{path...}", motet::http::files(words[2]));
  return motet::run_until_signal([&](const std::stop_token& stop) {
    motet::http::serve(listener, {.connections = {.drain = stop}}, routes);
  });
}
