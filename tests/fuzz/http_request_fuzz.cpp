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

void echo(motet::http::request& asked, motet::http::response& answer) {
  answer.write(std::string(asked.method()) + std::string(asked.path()));
  std::array<std::byte, 7> piece;
  while (const std::size_t size = asked.read(piece)) answer.write(std::span(piece).first(size));
}

/// Returns: what a client gets that sends these parts, without the dates.
std::string answers_to(const std::vector<std::string>& parts) {
  scripted_stream stream(parts);
  motet::http::serve_options how;
  how.head = 500;
  how.body = 300;
  how.fields = 10;
  motet::http::serve_connection(shown_stream{&stream}, how, echo);
  std::string all = stream.written();
  // What is echoed may look like a date; that of a server has one length.
  const std::string_view date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  for (std::size_t at = all.find("Date: "); at != all.npos; at = all.find("Date: ", at)) {
    if (std::string_view(all).substr(at, date.size()).ends_with(" GMT\r\n")) {
      all.erase(at, date.size());
    } else {
      ++at;
    }
  }
  return all;
}

/// The answers are whole, and the last is the only one that ends the connection.
void check(std::string_view answers) {
  while (!answers.empty()) {
    require(answers.starts_with("HTTP/1.1 "));
    const std::size_t end = answers.find("\r\n\r\n");
    require(end != answers.npos);
    const std::string_view head = answers.substr(0, end + 2);
    answers.remove_prefix(end + 4);
    if (head.starts_with("HTTP/1.1 100 ")) continue;
    const std::size_t length = head.find("\r\nContent-Length: ");
    const bool closes = head.find("\r\nConnection: close\r\n") != head.npos;
    require(length != head.npos);
    const std::size_t size = std::stoul(std::string(head.substr(length + 18)));
    // Of an answer to HEAD there is no body.
    if (answers.size() >= size && !answers.starts_with("HTTP/1.1 ")) answers.remove_prefix(size);
    require(!closes || answers.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(fuzz::same_in_parts(data, size, answers_to));
  return 0;
}
