// SPDX-License-Identifier: MIT
// What a WebSocket answers does not depend on how its peer's bytes come in parts.
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "check.hpp"
#include "shown_stream.hpp"

using fuzz::require;

namespace {

constexpr const char* asking =
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

void echo(motet::http::request& request, motet::http::response& answer) {
  auto socket = motet::http::websocket::accept(request, answer, {.message = 300});
  try {
    while (const auto message = socket.read()) {
      require(message->data.size() <= 300);
      socket.write(message->data);
    }
  } catch (const std::system_error&) {  // the peer breaks the rules, or is gone
  }
}

/// Returns: what a client gets that sends these parts behind its request.
std::string answers_to(std::vector<std::string> parts) {
  parts.insert(parts.begin(), asking);
  testing::scripted_stream stream(parts);
  motet::http::serve_connection(fuzz::shown_stream{&stream}, motet::http::serve_options(), echo);
  const std::string text = stream.written();
  require(text.starts_with("HTTP/1.1 101 "));
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::same_in_parts(data, size, answers_to);
  return 0;
}
