// SPDX-License-Identifier: MIT
// What an HTTP server answers does not depend on how a client's bytes come in parts, and is a row
// of whole answers, of which none follows one that ends the connection.
#include <array>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "shown_stream.hpp"

using fuzz::require;
using fuzz::shown_stream;
using testing::scripted_stream;

namespace {

void echo(motet::http::request& request, motet::http::response& answer) {
  answer.write(std::string(request.method()) + std::string(request.path()));
  std::array<std::byte, 7> piece;
  while (const std::size_t size = request.read(piece)) answer.write(std::span(piece).first(size));
}

/// Requires that the answers are whole, and the last is the only one that ends the connection.
/// Returns: the answers without what may differ: the dates; and 100, which a client whose body has
///          come is not told.
std::string checked(std::string_view answers) {
  std::string text;
  while (!answers.empty()) {
    require(answers.starts_with("HTTP/1.1 "));
    const std::size_t end = answers.find("\r\n\r\n");
    require(end != answers.npos);
    const std::string_view head = answers.substr(0, end + 2);
    answers.remove_prefix(end + 4);
    if (head.starts_with("HTTP/1.1 100 ")) continue;
    const std::size_t date = head.find("\r\nDate: ");
    require(date != head.npos);
    text.append(head.substr(0, date)).append(head.substr(head.find("\r\n", date + 2)));
    const std::size_t length = head.find("\r\nContent-Length: ");
    const bool closes = head.find("\r\nConnection: close\r\n") != head.npos;
    require(length != head.npos);
    const std::size_t size = std::stoul(std::string(head.substr(length + 18)));
    // Of an answer to HEAD there is no body.
    if (answers.size() >= size && !answers.starts_with("HTTP/1.1 ")) {
      text.append(answers.substr(0, size));
      answers.remove_prefix(size);
    }
    require(!closes || answers.empty());
  }
  return text;
}

/// Returns: what a client gets that sends these parts.
std::string answers_to(const std::vector<std::string>& parts) {
  scripted_stream stream(parts);
  motet::http::serve_options options;
  options.head = 500;
  options.body = 300;
  options.fields = 10;
  motet::http::serve_connection(shown_stream{&stream}, options, echo);
  return checked(stream.written());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::same_in_parts(data, size, answers_to);
  return 0;
}
