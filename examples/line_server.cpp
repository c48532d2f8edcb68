// SPDX-License-Identifier: MIT
// Answers each line with the same line in upper-case letters, and can be restarted under load.
// After SIGINT or SIGTERM it takes no new connections. On each open connection it answers the lines
// that have arrived whole by then, says at once that it will send no more, and drops what still
// comes until the client ends its side, for 2 s at most.
//
// The promise: a client that has had an answer on a connection, reads what comes, and ends its side
// within 2 s of the end-of-file, gets the whole answers to the first lines that it has sent, in
// their order, perhaps to all of them; then no part of another one, but the end-of-file, and never
// a reset. A line whose answer did not come was not acted on. It is not for connections that the
// server has not answered yet, which may be reset; nor for clients that do not read (they are cut
// 5 s after the signal), nor for a second signal, which cuts all.
// Run: line_server [PORT]; port 0, the default, lets the kernel choose.
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;
using motet::net::tcp_stream;

namespace {

using reader = motet::reader<tcp_stream>;
using writer = motet::writer<tcp_stream>;

constexpr std::size_t longest_line = 4'096;  // bytes, without the line feed
constexpr auto longest_farewell = 2s;
constexpr auto grace = 5s;

void answer(std::string_view line, writer& output) {
  std::string upper(line);
  for (char& letter : upper) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  output.write(upper + "\n");
}

/// Only the wait for a line is ended by the stop: a line that was taken is answered.
/// Returns: whether that was so; false if the client has ended its side.
bool answer_until(const std::stop_token& stop, reader& input, writer& output) {
  const auto next = [&] { return input.until("\n", longest_line); };
  while (const auto line = motet::move_on_when_stopped(stop, next)) {
    if (!line->has_value()) return false;
    answer(**line, output);
  }
  return true;
}

/// Returns: how many bytes have arrived that nobody has read.
std::size_t arrived(const tcp_stream& peer, reader& input) {
  int in_kernel = 0;
  if (::ioctl(peer.native_handle(), FIONREAD, &in_kernel) != 0) in_kernel = 0;
  return input.peek(0).size() + static_cast<std::size_t>(in_kernel);
}

/// Answers the lines that lie whole in the next `size` bytes, which have arrived: nothing waits for
/// the client, and a client that goes on sending does not delay the end.
void answer_arrived(std::size_t size, reader& input, writer& output) {
  while (size > 0) {
    const auto ahead = input.peek(std::min(size, longest_line + 1));
    const auto next = ahead.first(std::min(size, ahead.size()));
    if (std::ranges::find(next, std::byte{'\n'}) == next.end() && next.size() <= longest_line) {
      return;
    }
    const auto line = input.until("\n", longest_line);
    answer(*line, output);
    size -= line->size() + 1;
  }
}

void answer_all(tcp_stream& peer, const std::stop_token& stop) {
  reader input(peer, longest_line + 1);
  writer output(peer);
  try {
    if (answer_until(stop, input, output)) answer_arrived(arrived(peer, input), input, output);
  } catch (const motet::limit_exceeded&) {
    output.write("error: a line has at most 4096 bytes\n");
  } catch (const motet::unexpected_eof&) {
    // Part of a line is no request.
  }
  output.flush();
}

/// Closing a connection while something in it is unread would reset it, and the reset could
/// overtake the answers.
void say_farewell(tcp_stream& peer) {
  peer.shutdown(SHUT_WR);
  std::array<std::byte, 4'096> dropped;
  motet::move_on_after(longest_farewell, [&] {
    while (peer.read(dropped) > 0) continue;
  });
}

void serve(std::uint16_t port, const std::stop_token& stop) {
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(port));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  listener.serve({.drain = stop, .grace = grace}, [&](tcp_stream peer) {
    answer_all(peer, stop);
    say_farewell(peer);
  });
}

}  // namespace

int main(int count, char** words) {
  const std::string_view argument = count > 1 ? words[1] : "0";
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(argument.begin(), argument.end(), port);
  if (count > 2 || error != std::errc() || end != argument.end()) {
    std::fprintf(stderr, "usage: line_server [PORT]\n");
    return 2;
  }
  try {
    return motet::run_until_signal([port](const std::stop_token& stop) { serve(port, stop); });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "line_server: %s\n", failure.what());
    return 1;
  }
}
