// SPDX-License-Identifier: MIT
// Two threads, one port: each has a listener of its own, and the kernel shares the connections out.
// Serves its own clients, and says which thread served how many.
#include <array>
#include <atomic>
#include <cstdio>
#include <motet/motet.hpp>
#include <span>
#include <string_view>
#include <system_error>

namespace {

constexpr int clients = 200;
constexpr std::string_view greeting = "is there anybody?";

using motet::net::tcp_stream;

std::array<std::atomic<int>, 2> served;

/// Of the thread that asks.
int number_of_thread() {
  static std::atomic<int> threads{0};
  thread_local const int number = threads++;
  return number;
}

void echo(tcp_stream peer) {
  ++served[static_cast<std::size_t>(number_of_thread())];
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = peer.read(buffer)) peer.write_all(std::span(buffer).first(size));
}

tcp_stream connect(const motet::net::endpoint& address) {
  for (;;) {
    std::error_code error;
    tcp_stream stream = tcp_stream::connect(address, error);
    if (!error) return stream;
    motet::snooze();  // nobody listens yet
  }
}

bool is_answered(tcp_stream& server) {
  server.write_all(std::as_bytes(std::span(greeting)));
  std::array<std::byte, greeting.size()> answer;
  for (std::size_t size = 0; size < answer.size();) {
    const std::size_t count = server.read(std::span(answer).subspan(size));
    if (count == 0) return false;
    size += count;
  }
  return std::equal(answer.begin(), answer.end(), std::as_bytes(std::span(greeting)).begin());
}

}  // namespace

int main() {
  // A server of the real world knows its port.
  using motet::net::endpoint;
  const auto address = motet::net::tcp_listener(endpoint::loopback(0)).local_endpoint();

  motet::thread_pool pool(served.size(), "echo");
  std::size_t answers = 0;
  motet::group tasks;
  const auto server = tasks.spin([&] { motet::net::tcp_listener::serve(pool, address, echo); });
  motet::group visitors;
  for (int i = 0; i < clients; ++i) {
    visitors.spin([&] {
      tcp_stream stream = connect(address);
      answers += is_answered(stream) ? 1 : 0;
    });
  }
  visitors.await_all();
  server.cancel("everybody has been served");
  tasks.await_all();
  std::printf("%zu of %d answered; one thread served %d, the other %d\n", answers, clients,
              served[0].load(), served[1].load());
  return answers == clients ? 0 : 1;
}
