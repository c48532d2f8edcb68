// SPDX-License-Identifier: MIT
// A client and a server for world_test.py, whose peers are other programs.
//
// usage: tls_peer serve CHAIN KEY [TRUSTED-FOR-CLIENTS]
//            listens on a port of the loopback, and echoes lines; answers GET /N with N bytes
//        tls_peer get PORT HOST TRUSTED PATH [CHAIN KEY]
//            writes what the server on the loopback answers to GET PATH, and how they spoke
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <motet/motet.hpp>
#include <motet/tls.hpp>
#include <string>
#include <string_view>

using namespace motet;

namespace {

void answer(tls::stream& peer, std::string_view path) {
  const std::string body(std::strtoul(path.data() + 1, nullptr, 10), 'x');
  peer.write_all("HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                 body);
  peer.shutdown(SHUT_WR);
}

void serve_one(tls::stream peer) {
  reader input(peer);
  while (const auto line = input.line()) {
    const std::string text(*line);
    if (text.starts_with("GET /")) {
      while (input.line().value_or("") != "") continue;
      return answer(peer, std::string_view(text).substr(4));
    }
    peer.write_all(text + "\n");
  }
}

int serve(const std::vector<std::string>& arguments) {
  const tls::server_context context(
      {.certificates = {{arguments.at(0), arguments.at(1)}},
       .client_trusted_file = arguments.size() > 2 ? arguments[2] : std::string(),
       .protocols = {"http/1.1", "echo"}});
  net::tcp_listener listener(net::endpoint::loopback(0));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;
  listener.serve([&](net::tcp_stream peer) {
    with_timeout(std::chrono::seconds(10),
                 [&] { serve_one(tls::stream::accept(std::move(peer), context)); });
  });
  return 0;
}

int get(const std::vector<std::string>& arguments) {
  tls::client_options options{.trusted_file = arguments.at(2), .protocols = {"http/1.1"}};
  if (arguments.size() > 5) options.own = {arguments[4], arguments[5]};
  const tls::client_context context(options);
  const auto port = static_cast<std::uint16_t>(std::stoul(arguments.at(0)));
  for (int round = 0; round < 2; ++round) {
    tls::stream peer = tls::stream::connect(net::tcp_stream::connect(net::endpoint::loopback(port)),
                                            context, arguments.at(1));
    peer.write_all("GET " + arguments.at(3) + " HTTP/1.0\r\n\r\n");
    std::size_t size = 0;
    std::array<std::byte, 16384> buffer;
    while (const std::size_t part = peer.read(buffer)) size += part;
    std::cout << peer.version() << (peer.resumed() ? " resumed " : " new ") << peer.protocol()
              << ' ' << size << std::endl;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view command = count > 1 ? words[1] : "";
  const std::vector<std::string> arguments(words + std::min(count, 2), words + count);
  try {
    if (command == "serve") return serve(arguments);
    if (command == "get") return get(arguments);
    std::cerr << "usage: tls_peer serve|get ...\n";
  } catch (const std::exception& error) {
    std::cerr << "tls_peer: " << error.what() << '\n';
  }
  return 1;
}
