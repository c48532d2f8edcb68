// SPDX-License-Identifier: MIT
// Sends each datagram back to where it came from: what has come together is received by one call,
// and answered by another. What has been received when SIGINT or SIGTERM comes is still answered.
// Run: udp_echo [PORT]; port 0, the default, lets the kernel choose.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <span>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <vector>

using motet::net::datagram_slot;
using motet::net::outgoing_datagram;
using motet::net::udp_socket;

namespace {

constexpr std::size_t at_once = 64;           // as many as receive_many() takes
constexpr std::size_t largest_size = 65'507;  // of a datagram of IPv4: no slot is too small

/// A datagram that the kernel refuses to send is lost, as it may be on its way: the rest is sent.
void send_all(udp_socket& socket, std::span<const outgoing_datagram> answers) {
  while (!answers.empty()) {
    std::size_t count = 1;
    try {
      count = socket.send_many(answers);
    } catch (const std::system_error& refused) {
      std::fprintf(stderr, "udp_echo: to %s: %s\n", answers.front().to.to_string().c_str(),
                   refused.what());
    }
    answers = answers.subspan(count);
  }
}

void echo(udp_socket& socket, const std::stop_token& stop) {
  std::vector<std::byte> storage(at_once * largest_size);
  std::vector<datagram_slot> slots;
  for (std::size_t i = 0; i < at_once; ++i) {
    slots.push_back({.buffer = std::span(storage).subspan(i * largest_size, largest_size)});
  }
  std::vector<outgoing_datagram> answers;
  // Only the wait for datagrams is ended by the signal, not the sending of the answers.
  while (const auto slot_count =
             motet::move_on_when_stopped(stop, [&] { return socket.receive_many(slots); })) {
    answers.clear();
    for (const datagram_slot& slot : std::span(slots).first(*slot_count)) {
      answers.push_back({.bytes = slot.buffer.first(slot.got.size), .to = slot.got.from});
    }
    send_all(socket, answers);
  }
}

void serve(std::uint16_t port, const std::stop_token& stop) {
  udp_socket socket(motet::net::endpoint::loopback(port));
  std::printf("listening on %s\n", socket.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  echo(socket, stop);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view argument = count > 1 ? words[1] : "0";
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(argument.begin(), argument.end(), port);
  if (count > 2 || error != std::errc() || end != argument.end()) {
    std::fprintf(stderr, "usage: udp_echo [PORT]\n");
    return 2;
  }
  try {
    return motet::run_until_signal([port](const std::stop_token& stop) { serve(port, stop); });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "udp_echo: %s\n", failure.what());
    return 1;
  }
}
