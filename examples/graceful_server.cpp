// SPDX-License-Identifier: MIT
// An echo server that is asked to end: it takes no more connections, gives those that it has a
// while to finish, and ends the rest. Its clients are in the same program. Run: graceful_server
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <motet/motet.hpp>
#include <span>
#include <stop_token>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using motet::net::tcp_listener;
using motet::net::tcp_stream;

namespace {

/// A peer that is gone is nobody's failure: the others go on.
void echo(tcp_stream peer) {
  std::error_code error;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = peer.read(buffer, error)) {
    peer.write_all(std::span(buffer).first(size), error);
  }
}

void serve(tcp_listener listener, std::stop_token stop) {
  const std::size_t cut_count = listener.serve({.drain = stop, .grace = 100ms}, echo);
  std::printf("server: has ended, %zu had not finished\n", cut_count);
}

/// Sends a byte each 30 ms, so often, and reads it again.
void talk(const char* name, const motet::net::endpoint& server_address, int times) {
  std::error_code error;
  tcp_stream server = tcp_stream::connect(server_address, error);
  if (error) {
    std::printf("%s: %s\n", name, error.message().c_str());
    return;
  }
  std::array<std::byte, 1> byte{};
  for (int i = 0; i < times; ++i) {
    server.write_all(byte, error);
    if (server.read(byte, error) == 0) {
      std::printf("%s: the server hung up\n", name);
      return;
    }
    motet::sleep_for(30ms);
  }
  std::printf("%s: has finished\n", name);
}

}  // namespace

int main() {
  tcp_listener listener(motet::net::endpoint::loopback(0));
  const motet::net::endpoint server_address = listener.local_endpoint();
  std::stop_source stop;
  motet::await_all([&] { serve(std::move(listener), stop.get_token()); },
                   [&] { talk("short client", server_address, 1); },
                   [&] { talk("longer client", server_address, 4); },
                   [&] { talk("endless client", server_address, 1'000); },
                   [&] {
                     motet::sleep_for(60ms);
                     stop.request_stop();  // a signal could ask as well: see line_server
                     motet::sleep_for(10ms);
                     talk("late client", server_address, 1);
                   });
}
