// SPDX-License-Identifier: MIT
// Heads and chunks of messages, read by Boost.Beast's parser. What that lets pass and two programs
// could understand differently is refused here: see parser.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <motet/http/fields.hpp>
#include <optional>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// A parsed head. The views refer to the text that `headers` keeps.
struct message_head {
  std::string_view method;  // of a request
  std::string_view target;
  int status = 0;  // of a response
  fields headers;
  bool is_1_1 = false;
  bool keep_alive = false;
  bool chunked = false;
  std::optional<std::uint64_t> length;
};

class message_parser {
 public:
  message_parser();
  message_parser(const message_parser&) = delete;
  message_parser& operator=(const message_parser&) = delete;
  ~message_parser();

  /// `text` is a head without the empty line behind it.
  /// Returns: 0, or the status of an answer to a request that is refused.
  int parse_request(std::string_view text, std::size_t most_fields, message_head& head);
  /// The same for a response. Returns: whether `text` is a valid one.
  bool parse_response(std::string_view text, std::size_t most_fields, message_head& head);

  struct step {
    std::size_t size = 0;    // bytes that are done with
    std::string_view piece;  // of the body
    bool done = false;
    bool bad = false;
    bool needs_more = false;
  };
  /// Takes the next piece, of at most `limit` bytes, of a body in chunks.
  step next_piece(std::string_view input, std::size_t limit) noexcept;

 private:
  struct implementation;
  std::unique_ptr<implementation> last_;  // the message that was begun last
};

}}}  // namespace motet::MOTET_ABI::http
