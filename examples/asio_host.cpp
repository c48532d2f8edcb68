// SPDX-License-Identifier: MIT
// One thread, Asio's loop: a server of fibers, a client of Asio's callbacks, a fiber that waits for
// Asio's timer and sockets.
#include <array>
#include <asio.hpp>
#include <chrono>
#include <cstdio>
#include <motet/compat/asio.hpp>
#include <motet/motet.hpp>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using asio::ip::tcp;
using motet::compat::use_fiber;

namespace {

void greet(motet::net::tcp_stream peer) {
  motet::reader input(peer);
  while (const auto name = input.line()) peer.write_all("hello, " + std::string(*name) + "\n");
}

/// As every program of Asio's: each step is a callback.
struct callback_client {
  explicit callback_client(asio::io_context& io) : socket(io) {}

  void ask(const tcp::endpoint& server) {
    socket.async_connect(server, [this](std::error_code) {
      asio::async_write(
          socket, asio::buffer("callback\n", 9), [this](std::error_code, std::size_t) {
            asio::async_read_until(socket, answer, '\n', [this](std::error_code, std::size_t size) {
              std::printf("%.*s", static_cast<int>(size),
                          static_cast<const char*>(answer.data().data()));
              socket.close();
            });
          });
    });
  }

  tcp::socket socket;
  asio::streambuf answer;
};

void ask_as_fiber(asio::io_context& io, const tcp::endpoint& server) {
  asio::steady_timer(io, 20ms).async_wait(use_fiber);
  tcp::socket socket(io);
  socket.async_connect(server, use_fiber);
  asio::async_write(socket, asio::buffer("fiber\n", 6), use_fiber);
  std::array<char, 13> answer;
  asio::async_read(socket, asio::buffer(answer), use_fiber);
  std::printf("%.*s", static_cast<int>(answer.size()), answer.data());
}

}  // namespace

int main() {
  asio::io_context io;
  const motet::compat::asio_host host(io.get_executor());
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(0));
  const tcp::endpoint server(asio::ip::address_v4::loopback(), listener.local_endpoint().port());
  motet::group servers;
  servers.spin([&] { listener.serve(greet); });
  callback_client client(io);
  client.ask(server);
  motet::spin([&] {
    ask_as_fiber(io, server);
    io.stop();
  });
  io.run();
}
