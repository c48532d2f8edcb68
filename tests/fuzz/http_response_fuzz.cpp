// SPDX-License-Identifier: MIT
// What a client makes of an answer does not depend on how its bytes come in parts.
#include <array>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <vector>

#include "check.hpp"
#include "http/body_reader.hpp"
#include "http/parser.hpp"
#include "io/scripted_stream.hpp"

using fuzz::require;
using testing::scripted_stream;

namespace {

/// Returns: the status, the headers and the body, or how it failed.
std::string understood(const std::vector<std::string>& parts) {
  scripted_stream stream(parts);
  motet::detail::read_buffer buffer(motet::detail::input_of(stream), 600);
  motet::http::message_parser parser;
  motet::http::message_head head;
  std::string result;
  try {
    const auto text = buffer.until("\r\n\r\n", 500);
    if (!text.has_value() || !parser.parse_response(*text, 10, head)) return "no head";
    result = std::to_string(head.status) + (head.keep_alive ? " kept" : " over");
    for (const motet::http::field& field : head.headers) {
      require(field.name.find_first_of("\r\n: ") == field.name.npos);
      require(field.value.find_first_of("\r\n") == field.value.npos);
      result.append(field.name).append("=").append(field.value).append(";");
    }
    motet::http::body_reader body(buffer, parser);
    if (head.chunked || head.length.has_value()) {
      require(!(head.chunked && head.length.has_value()));
      body.begin(head, 300, std::chrono::seconds(1));
    } else {
      body.begin_to_end(300, std::chrono::seconds(1));
    }
    std::array<std::byte, 7> piece;
    while (const std::size_t size = body.read(piece)) {
      result.append(reinterpret_cast<const char*>(piece.data()), size);
    }
    require(body.ended());
    return result + " whole";
  } catch (const motet::http::status_error& error) {
    return "refused " + std::to_string(error.status());
  } catch (const motet::unexpected_eof&) {
    return result + " cut";
  } catch (const motet::limit_exceeded&) {
    return "too large";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::same_in_parts(data, size, understood);
  return 0;
}
