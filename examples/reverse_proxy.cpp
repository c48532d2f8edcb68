// SPDX-License-Identifier: MIT
// An HTTP server that has other servers answer, in turn. Bodies go through as they come, and so do
// time limits; what only concerns a connection does not.
//
// usage: reverse_proxy PORT http://SERVER [http://SERVER...]
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace motet;

namespace {

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

/// Whether a list, as "close, X-Secret", has a word.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (is_same(item, word)) return true;
  }
  return false;
}

/// Whether a header belongs to one connection only, or is replaced in the forwarded message.
/// Source: RFC 9110, 7.6.1.
bool ends_here(const http::fields& headers, std::string_view name) {
  static constexpr std::string_view excluded_names[] = {
      "connection", "keep-alive",      "proxy-connection",    "proxy-authenticate",
      "te",         "trailer",         "transfer-encoding",   "upgrade",
      "host",       "content-length",  "proxy-authorization", "expect",
      "date",       "forwarded",       "request-timeout",     "x-forwarded-for",
      "via",        "x-forwarded-host"};
  const auto is_name = [&](std::string_view candidate) { return is_same(candidate, name); };
  if (std::any_of(std::begin(excluded_names), std::end(excluded_names), is_name)) return true;
  return std::any_of(headers.begin(), headers.end(), [&](const http::field& header) {
    return is_same(header.name, "connection") && lists(header.value, name);
  });
}

void copy_headers(const http::fields& source, http::fields& target) {
  for (const http::field& header : source) {
    if (!ends_here(source, header.name)) target.add(header.name, header.value);
  }
}

/// The path and the query, whichever form the target has: what a client writes is never taken for
/// the address of a server. Source: RFC 9112, 3.2.
std::string place_of(const http::request& request) {
  std::string_view target = request.target();
  if (target.starts_with('/')) return std::string(target);
  const std::size_t scheme = target.find("://");
  if (scheme == target.npos) throw http::status_error(400, "the target has no path");
  const std::size_t begin = target.find_first_of("/?", scheme + 3);
  target = begin == target.npos ? "/" : target.substr(begin);
  return target.starts_with('/') ? std::string(target) : '/' + std::string(target);
}

std::string client_of(const http::request& request) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(request.native_handle(), raw, &size) != 0) return "unknown";
  const std::string text = net::endpoint(raw, size).to_string();
  return text.substr(0, text.rfind(':'));
}

/// Source: RFC 9110, 7.6.3.
std::string via(std::string_view hops) {
  return (hops.empty() ? "" : std::string(hops) + ", ") + "1.1 motet";
}

void forward(http::client& client, const std::string& server, http::request& request,
             http::response& answer) {
  if (request.target() == "*") {  // about this server as a whole
    answer.status(204);
    return;
  }
  http::request_options options;
  copy_headers(request.headers(), options.headers);
  options.headers.add("Via", via(request.header("via")));
  options.headers.add("X-Forwarded-For", client_of(request));
  options.headers.add("X-Forwarded-Host", request.header("host"));
  if (request.length() != 0u) {
    options.body_from = [&](std::span<std::byte> buffer) { return request.read(buffer); };
    if (const auto length = request.length())
      options.headers.set("Content-Length", std::to_string(*length));
  }
  http::reply reply = client.request(request.method(), server + place_of(request), options);
  answer.status(reply.status());
  copy_headers(reply.headers(), answer.headers());
  answer.header("Via", via(reply.header("via")));
  if (const auto length = reply.length()) answer.header("Content-Length", std::to_string(*length));
  std::array<std::byte, 16384> piece;
  while (const std::size_t size = reply.read(piece)) answer.write(std::span(piece).first(size));
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: reverse_proxy PORT http://SERVER [http://SERVER...]\n";
    return 2;
  }
  const std::vector<std::string> servers(words + 2, words + count);
  net::tcp_listener listener(
      net::endpoint::loopback(static_cast<std::uint16_t>(std::atoi(words[1]))));
  std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;

  return run_until_signal([&](const std::stop_token& stop) {
    http::client client({.connections_per_host = 256, .redirects = 0});
    std::size_t next = 0;
    http::serve_options options;
    options.connections.drain = stop;
    http::serve(listener, options, [&](http::request& request, http::response& answer) {
      try {
        forward(client, servers[next++ % servers.size()], request, answer);
      } catch (const timed_out&) {
        throw http::status_error(504, "the server takes too long");
      } catch (const http::status_error&) {
        throw;
      } catch (const std::exception& error) {
        throw http::status_error(502, std::string("the server has failed: ") + error.what());
      }
    });
  });
}
