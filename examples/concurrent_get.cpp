// SPDX-License-Identifier: MIT
// Asks several web servers at the same time, each in a fiber of its own, and writes what they
// answer in the order of the arguments: all together take as long as the slowest one alone. A
// server that fails, or takes more than 2 s, keeps nobody else from being answered.
// Run: concurrent_get URL..., where a URL is http://HOST[:PORT][/PATH]
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr auto longest_wait = 2s;

struct url {
  std::string host;
  std::uint16_t port = 80;
  std::string path;
};

url parse(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) throw std::invalid_argument("a URL begins with http://");
  text.remove_prefix(scheme.size());
  const std::string_view place = text.substr(0, text.find('/'));
  const std::string_view path = text.substr(place.size());
  const std::string_view host = place.substr(0, place.find(':'));
  url result{.host = std::string(host), .path = path.empty() ? "/" : std::string(path)};
  if (host.size() < place.size()) {
    const std::string_view port = place.substr(host.size() + 1);
    const auto [end, error] = std::from_chars(port.begin(), port.end(), result.port);
    if (error != std::errc() || end != port.end()) {
      throw std::invalid_argument("a port is a number from 0 to 65535");
    }
  }
  return result;
}

struct answer {
  bool good = false;
  std::string text;  // the status and the size; or what went wrong
};

answer ask(const url& address) {
  auto server = motet::net::tcp_stream::connect(address.host, address.port);
  server.write_all("GET " + address.path + " HTTP/1.0\r\nHost: " + address.host +
                   "\r\nConnection: close\r\n\r\n");
  motet::reader input(server);
  const auto status = input.line();
  if (!status || !status->starts_with("HTTP/")) throw std::runtime_error("no answer in HTTP");
  std::string text(*status);
  while (!input.until("\r\n").value_or("").empty()) continue;  // the fields of the head
  std::size_t size = 0;
  std::vector<std::byte> piece(65'536);
  while (const std::size_t count = input.read(piece)) size += count;
  return {.good = true, .text = text + ", " + std::to_string(size) + " bytes"};
}

/// What is wrong with one URL must not end the other requests.
answer get(std::string_view text) {
  try {
    return motet::with_timeout(longest_wait, [&] { return ask(parse(text)); });
  } catch (const motet::timed_out&) {
    return {.good = false, .text = "no answer in time"};
  } catch (const std::exception& failure) {
    return {.good = false, .text = failure.what()};
  }
}

/// Returns: whether all have answered.
bool get_all(std::span<char*> urls) {
  std::vector<std::function<answer()>> requests;
  for (const char* address : urls) requests.push_back([address] { return get(address); });
  const auto begin = motet::clock::now();
  const std::vector<answer> answers = motet::await_all(requests);
  const auto duration = motet::clock::now() - begin;

  std::size_t answer_count = 0;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    const answer& item = answers[i];
    std::fprintf(item.good ? stdout : stderr, "%s: %s\n", urls[i], item.text.c_str());
    if (item.good) ++answer_count;
  }
  std::printf(
      "%zu answers in %lld ms\n", answer_count,
      static_cast<long long>(std::chrono::round<std::chrono::milliseconds>(duration).count()));
  return answer_count == urls.size();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: concurrent_get URL...\n");
    return 2;
  }
  const std::span urls(arguments + 1, static_cast<std::size_t>(count - 1));
  return motet::run([&] { return get_all(urls) ? 0 : 1; });
}
