// SPDX-License-Identifier: MIT
// See http/parser.hpp. Source: RFC 9112, 3, 6 and 11.2; basic_parser of Boost.Beast.
#include "http/parser.hpp"

#include <algorithm>
// Its assertions about the input do not hold for every input; the checks below replace them.
#define BOOST_DISABLE_ASSERTS
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <new>
#include <string>

#include "http/fields_access.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

namespace beast = boost::beast;
using beast_error = boost::system::error_code;

std::string_view of(beast::string_view text) noexcept {
  return {text.data(), text.size()};
}

beast_error refusal() noexcept {
  return beast::http::make_error_code(beast::http::error::bad_value);
}

/// If two programs disagree about the end of a body, a request can be smuggled past one of them. So
/// a message may have one field that determines it, with a value that leaves no room for
/// interpretation.
class framing {
 public:
  /// Returns: false if the message is refused.
  bool note(std::string_view name, std::string_view value) noexcept {
    if (equal_but_for_case(name, "transfer-encoding")) {
      return ++encodings_ == 1 && equal_but_for_case(value, "chunked");
    }
    if (equal_but_for_case(name, "content-length")) {
      length_ = number_of(value);
      return ++lengths_ == 1 && length_.has_value();
    }
    if (equal_but_for_case(name, "host")) ++hosts_;
    return true;
  }

  bool may_be_request(bool is_1_1) const noexcept {
    return may_be_response(is_1_1) && (is_1_1 ? hosts_ == 1 : hosts_ <= 1);
  }
  bool may_be_response(bool is_1_1) const noexcept {
    return encodings_ + lengths_ <= 1 && (is_1_1 || encodings_ == 0);
  }
  bool chunked() const noexcept { return encodings_ > 0; }
  const std::optional<std::uint64_t>& length() const noexcept { return length_; }

 private:
  int encodings_ = 0;
  int lengths_ = 0;
  int hosts_ = 0;
  std::optional<std::uint64_t> length_;
};

template <bool IsRequest>
class parser_of final : public beast::http::basic_parser<IsRequest> {
 public:
  parser_of(message_head& head, std::size_t most_fields) noexcept
      : head_(head), most_fields_(most_fields) {
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
    this->body_limit(
        std::numeric_limits<std::uint64_t>::max());  // the body itself is counted elsewhere
  }

  bool has_too_many_fields() const noexcept { return has_too_many_fields_; }
  const framing& where_it_ends() const noexcept { return framing_; }

  std::string_view parse_piece(std::size_t limit, std::string_view input, std::size_t& size,
                               beast_error& error) {
    limit_ = limit;
    piece_ = {};
    size = this->put(boost::asio::const_buffer(input.data(), input.size()), error);
    return piece_;
  }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, beast_error&) override {
    head_.method = of(method);
    head_.target = of(target);
    head_.is_1_1 = version == 11;
  }
  void on_response_impl(int status, beast::string_view, int version, beast_error&) override {
    head_.status = status;
    head_.is_1_1 = version == 11;
  }

  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     beast_error& error) override {
    if (in_trailer_) return;
    has_too_many_fields_ = head_.headers.size() == most_fields_;
    if (has_too_many_fields_ || !framing_.note(of(name), of(value))) {
      error = refusal();
      return;
    }
    const std::string& text = fields_access::text(head_.headers);
    const bool is_here = value.data() >= text.data() && value.data() <= text.data() + text.size();
    if (!is_here && !value.empty()) {
      error = refusal();  // of several lines, put together elsewhere
      return;
    }
    fields_access::note(head_.headers, of(name), value.empty() ? of(name).substr(0, 0) : of(value));
  }

  void on_header_impl(beast_error&) override { in_trailer_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast_error&) override {}
  std::size_t on_body_impl(beast::string_view, beast_error&) override { return 0; }
  /// Chunk extensions have no use, and a quoted line end in one is a known smuggling vector.
  void on_chunk_header_impl(std::uint64_t, beast::string_view extension,
                            beast_error& error) override {
    if (extension.size() > 256 || !is_field_value(of(extension))) error = refusal();
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, beast_error&) override {
    piece_ = of(body).substr(0, limit_);
    return piece_.size();
  }
  void on_finish_impl(beast_error&) override {}

  message_head& head_;
  const std::size_t most_fields_;
  framing framing_;
  bool has_too_many_fields_ = false;
  bool in_trailer_ = false;
  std::size_t limit_ = 0;
  std::string_view piece_;
};

}  // namespace

struct message_parser::implementation {
  std::optional<parser_of<true>> request;
  std::optional<parser_of<false>> response;
};

namespace {

/// Whether a value goes over several lines: the parser would put them together.
bool has_folded_line(std::string_view head) noexcept {
  return head.find("\n ") != std::string_view::npos || head.find("\n\t") != std::string_view::npos;
}

/// Whether the first line ends with a version, though of another HTTP.
bool names_other_version(std::string_view head) noexcept {
  const std::string_view line = head.substr(0, head.find('\r'));
  const std::size_t space = line.rfind(' ');
  const std::string_view version = line.substr(space == std::string_view::npos ? 0 : space + 1);
  return std::count(line.begin(), line.end(), ' ') == 2 && version.size() == 8 &&
         version.starts_with("HTTP/") && is_digit(version[5]) && is_digit(version[7]);
}

/// A client takes what servers send: a later version of HTTP/1, a status without the space behind
/// it, and fields on several lines. Source: RFC 9110, 2.5; RFC 9112, 5.2.
void make_response_regular(std::string& head) {
  constexpr std::string_view version = "HTTP/1.";
  constexpr std::size_t end_of_status = version.size() + 1 + 4;
  std::size_t end = head.find("\r\n");
  if (!head.starts_with(version) || end < end_of_status) return;
  char& minor = head[version.size()];
  if (minor > '1' && minor <= '9') minor = '1';
  if (end == end_of_status) head.insert(end++, 1, ' ');
  // A line behind the first that begins with a space belongs to no field.
  for (end = head.find("\r\n", end + 2); end != std::string::npos;
       end = head.find("\r\n", end + 2)) {
    const char next = end + 2 < head.size() ? head[end + 2] : '\0';
    if (next == ' ' || next == '\t') head[end] = head[end + 1] = ' ';
  }
}

/// Returns: the error in the head; no error if it is valid.
template <bool IsRequest>
beast_error parse(parser_of<IsRequest>& parser, std::string_view text, message_head& head) {
  head.headers.clear();
  std::string& storage = fields_access::text(head.headers);
  storage.append(text).append("\r\n\r\n");
  if (!IsRequest) make_response_regular(storage);
  std::size_t size = 0;
  beast_error error;
  parser.parse_piece(0, storage, size, error);
  if (!error && (size != storage.size() || has_folded_line(storage))) error = refusal();
  if (error) return error;
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.where_it_ends().chunked();
  head.length = parser.where_it_ends().length();
  return {};
}

template <bool IsRequest>
void parse_piece(parser_of<IsRequest>& parser, std::string_view input, std::size_t limit,
                 message_parser::step& result) {
  beast_error error;
  result.piece = parser.parse_piece(limit, input, result.size, error);
  result.needs_more = error == beast::http::error::need_more;
  result.bad = error && !result.needs_more;
  result.done = parser.is_done();
}

}  // namespace

message_parser::message_parser() : last_(std::make_unique<implementation>()) {}
message_parser::~message_parser() = default;

int message_parser::parse_request(std::string_view text, std::size_t most_fields,
                                  message_head& head) {
  parser_of<true>& parser = last_->request.emplace(head, most_fields);
  const beast_error error = parse(parser, text, head);
  if (parser.has_too_many_fields()) return 431;
  if (error == beast::http::error::bad_version && names_other_version(text)) return 505;
  return error || !parser.where_it_ends().may_be_request(head.is_1_1) ? 400 : 0;
}

bool message_parser::parse_response(std::string_view text, std::size_t most_fields,
                                    message_head& head) {
  parser_of<false>& parser = last_->response.emplace(head, most_fields);
  constexpr int least_status = 100;
  return !parse(parser, text, head) && head.status >= least_status &&
         parser.where_it_ends().may_be_response(head.is_1_1);
}

message_parser::step message_parser::next_piece(std::string_view input,
                                                std::size_t limit) noexcept {
  step result;
  try {
    if (last_->request.has_value()) {
      parse_piece(*last_->request, input, limit, result);
    } else {
      parse_piece(*last_->response, input, limit, result);
    }
  } catch (...) {
    result.bad = true;
  }
  return result;
}

}}}  // namespace motet::MOTET_ABI::http
