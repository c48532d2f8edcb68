// SPDX-License-Identifier: MIT
// Takes TCP connections and joins each with a connection to HOST:PORT: what one end sends the other
// gets, and the end of one direction leaves the other one open. After SIGINT or SIGTERM it takes no
// more connections, gives those that are open 3 s to end, and cuts the rest; a second signal cuts
// them at once. With IDLE-SECONDS it cuts a connection on which nothing has come for so long.
// Run: proxy LISTEN-PORT HOST PORT [IDLE-SECONDS]; listen port 0 lets the kernel choose.
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using motet::net::tcp_listener;
using motet::net::tcp_stream;

namespace {

constexpr auto grace = 3s;

struct arguments {
  std::uint16_t listen_port = 0;
  std::string host;
  std::uint16_t port = 0;
  std::optional<std::chrono::seconds> idle;
};

std::uint16_t number(std::string_view text, std::uint16_t least) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value < least) {
    throw std::invalid_argument("'" + std::string(text) + "' is no number from " +
                                std::to_string(least) + " to 65535");
  }
  return value;
}

arguments read_arguments(const std::vector<std::string_view>& words) {
  if (words.size() < 4 || words.size() > 5) {
    throw std::invalid_argument("usage: proxy LISTEN-PORT HOST PORT [IDLE-SECONDS]");
  }
  arguments result{.listen_port = number(words[1], 0),
                   .host = std::string(words[2]),
                   .port = number(words[3], 1),
                   .idle = {}};
  if (words.size() == 5) result.idle = std::chrono::seconds(number(words[4], 1));
  return result;
}

void join(const arguments& options, tcp_stream client) {
  tcp_stream upstream = tcp_stream::connect(options.host, options.port);
  if (options.idle) {
    motet::proxy(client, upstream, *options.idle);
  } else {
    motet::proxy(client, upstream);
  }
}

/// A connection that fails, because its upstream is not there for example, ends alone.
void report(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "proxy: a connection was cut: %s\n", failure.what());
  }
}

void serve(const arguments& options, std::stop_token stop) {
  tcp_listener listener(motet::net::endpoint::loopback(options.listen_port));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  const std::size_t cut_count =
      listener.serve({.drain = stop, .grace = grace, .on_error = report},
                     [&](tcp_stream client) { join(options, std::move(client)); });
  if (cut_count > 0) std::fprintf(stderr, "proxy: connections cut at the end: %zu\n", cut_count);
}

}  // namespace

int main(int count, char** words) {
  try {
    const arguments options = read_arguments({words, words + count});
    return motet::run_until_signal([&](const std::stop_token& stop) { serve(options, stop); });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "proxy: %s\n", failure.what());
    return 1;
  }
}
