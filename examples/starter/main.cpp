// SPDX-License-Identifier: MIT
// Run: greeter [PORT]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stop_token>

#include "greeting.hpp"

int main(int argc, char** argv) {
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(port));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  return motet::run_until_signal(
      [&](const std::stop_token& stop) { serve_greetings(listener, stop); });
}
