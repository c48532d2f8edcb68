// SPDX-License-Identifier: MIT
// A program of somebody else that speaks TLS, with a server that has gone.
#include <iostream>
#include <motet/motet.hpp>
#include <motet/tls.hpp>

int main() {
  const motet::tls::client_context trusted;
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(0));
  auto gone = motet::spin([&] { listener.accept().close(); });
  try {
    motet::tls::stream::connect(motet::net::tcp_stream::connect(listener.local_endpoint()), trusted,
                                "example.test");
  } catch (const std::system_error& error) {
    std::cout << error.what() << '\n';
    return error.code() == motet::tls::errc::truncated ? 0 : 1;
  }
  return 1;
}
