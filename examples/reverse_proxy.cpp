// SPDX-License-Identifier: MIT
// An HTTP server that has other servers answer, in turn. Bodies go through as they come, and so do
// time limits; what only concerns a connection does not.
//
// usage: reverse_proxy PORT http://SERVER [http://SERVER...]
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace motet;

namespace {

/// Headers of a connection, and those that the next message is given anew. Source: RFC 9110, 7.6.1.
bool is_of_connection(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::string_view all[] = {
      "connection", "keep-alive", "proxy-connection", "te",     "trailer", "transfer-encoding",
      "upgrade",    "host",       "content-length",   "expect", "date",    "request-timeout"};
  return std::find(std::begin(all), std::end(all), name) != std::end(all);
}

void forward(http::client& client, const std::string& server, http::request& asked,
             http::response& answer) {
  http::request_options how;
  for (const http::field& each : asked.headers()) {
    if (!is_of_connection(std::string(each.name))) how.headers.add(each.name, each.value);
  }
  how.headers.add("X-Forwarded-Host", asked.header("host"));
  if (asked.length() != 0u) {
    how.body_from = [&](std::span<std::byte> room) { return asked.read(room); };
  }
  http::reply from = client.request(asked.method(), server + std::string(asked.target()), how);
  answer.status(from.status());
  for (const http::field& each : from.headers()) {
    if (!is_of_connection(std::string(each.name))) answer.headers().add(each.name, each.value);
  }
  if (const auto length = from.length()) answer.header("Content-Length", std::to_string(*length));
  std::array<std::byte, 16384> piece;
  while (const std::size_t size = from.read(piece)) answer.write(std::span(piece).first(size));
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: reverse_proxy PORT http://SERVER [http://SERVER...]\n";
    return 2;
  }
  const std::vector<std::string> servers(words + 2, words + count);
  net::tcp_listener listener(
      net::endpoint::loopback(static_cast<std::uint16_t>(std::atoi(words[1]))));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;

  return run_until_signal([&](const std::stop_token& stop) {
    http::client client({.connections_per_host = 256, .redirects = 0});
    std::size_t next = 0;
    http::serve_options how;
    how.connections.drain = stop;
    http::serve(listener, how, [&](http::request& asked, http::response& answer) {
      try {
        forward(client, servers[next++ % servers.size()], asked, answer);
      } catch (const timed_out&) {
        throw http::status_error(504, "the server takes too long");
      } catch (const http::status_error&) {
        throw;
      } catch (const std::exception& error) {
        throw http::status_error(502, std::string("the server has failed: ") + error.what());
      }
    });
  });
}
