// SPDX-License-Identifier: MIT
// A directory of files, by https: parts of files, and files that a client has already, are answered
// as they should be.
//
// usage: https_files DIRECTORY CHAIN.pem KEY.pem [PORT]
//        curl --cacert authority.pem https://localhost:8443/page.html
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <motet/tls.hpp>

using namespace motet;
using namespace std::chrono_literals;

int main(int count, char** words) {
  if (count < 4) {
    std::cerr << "usage: https_files DIRECTORY CHAIN.pem KEY.pem [PORT]\n";
    return 2;
  }
  const tls::server_context context(
      {.certificates = {{.chain_file = words[2], .key_file = words[3]}},
       .protocols = {"http/1.1"}});
  http::router routes;
  routes.get("/{path...}", http::files(words[1]));
  net::tcp_listener listener(
      net::endpoint::loopback(static_cast<std::uint16_t>(count > 4 ? std::atoi(words[4]) : 8443)));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;

  return run_until_signal([&](const std::stop_token& stop) {
    http::serve_options options;
    options.connections.drain = stop;
    options.connections.on_error = [](const std::exception_ptr&) {};  // clients that fail at TLS
    listener.serve(options.connections, [&](net::tcp_stream peer) {
      auto safe = with_timeout(10s, [&] { return tls::stream::accept(std::move(peer), context); });
      http::serve_connection(std::move(safe), options, routes);
    });
  });
}
