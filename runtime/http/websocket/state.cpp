// SPDX-License-Identifier: MIT
// See http/websocket/state.hpp.
#include "http/websocket/state.hpp"

#include <algorithm>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/http/client.hpp>
#include <mutex>
#include <stdexcept>
#include <system_error>

#include "http/parser.hpp"
#include "http/text.hpp"
#include "http/websocket/lists.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

namespace beast = boost::beast;
using beast_error = boost::system::error_code;
using beast::http::field::sec_websocket_protocol;

/// What a message's buffer begins with.
constexpr std::size_t initial_size = 4096;

/// The most bytes and fields of a server's answer.
constexpr std::size_t most_of_head = std::size_t{16} * 1024;
constexpr std::size_t most_fields = 100;

/// No code is as large. Source: RFC 6455, 7.4.2.
constexpr std::uint16_t first_invalid_code = 5000;

std::string_view text_of(beast::string_view text) noexcept {
  return {text.data(), text.size()};
}

[[noreturn]] void throw_ended() {
  throw std::system_error(std::make_error_code(std::errc::broken_pipe),
                          "a WebSocket that has ended");
}

/// Whether a close frame may contain this code. Source: RFC 6455, 7.4.
bool may_be_sent(std::uint16_t code) noexcept {
  if (code >= 3000) return code < first_invalid_code;
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

/// Returns: the head of a server's final response. Throws: bad_reply if it is malformed.
message_head read_head(detail::read_buffer& input) {
  message_parser parser;
  message_head head;
  try {
    do {
      const std::optional<std::string_view> text = input.until("\r\n\r\n", most_of_head);
      if (!text.has_value() || !parser.parse_response(*text, most_fields, head)) {
        throw bad_reply("websocket: the server's response is not valid HTTP");
      }
    } while (head.status / 100 == 1 && head.status != 101);
  } catch (const limit_exceeded&) {
    throw bad_reply("websocket: the header section of the server's response is too large");
  } catch (const unexpected_eof&) {
    throw bad_reply("websocket: the server's response is truncated");
  }
  return head;
}

/// Whether the last character of `text`, which is UTF-8 up to there, lacks some of its bytes.
bool ends_within_character(std::string_view text) noexcept {
  for (std::size_t size = 1; size <= std::min<std::size_t>(text.size(), 3); ++size) {
    const auto first = static_cast<unsigned char>(text[text.size() - size]);
    const bool continues = (first & 0xc0) == 0x80;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (!continues) return size < length;
  }
  return false;
}

}  // namespace

websocket::state::state(server_connection& connection, const websocket_options& options)
    : options_(options),
      socket_(connection.input(), connection.stream(), options.stall, &connection.answer()) {
  set_up();
}

websocket::state::state(detail::any_stream stream, const secure_client& secure,
                        const websocket_options& options)
    : secure_(secure),
      options_(options),
      stream_(std::move(stream)),
      socket_(input_.emplace(stream_.input(), initial_size), stream_, options.stall, nullptr) {
  set_up();
}

void websocket::state::set_up() {
  socket_.auto_fragment(false);
  socket_.read_message_max(std::max<std::size_t>(options_.message, 1));
  socket_.control_callback([this](beast::websocket::frame_type kind, beast::string_view text) {
    if (kind == beast::websocket::frame_type::ping) {
      socket_.next_layer().unsent_pong().emplace(text.data(), text.size());
    }
    if (kind != beast::websocket::frame_type::close) return;
    // Boost.Beast takes them, and would send them back.
    if (socket_.reason().code >= first_invalid_code) {
      return refuse(beast::websocket::close_code::protocol_error,
                    beast::websocket::error::bad_close_code);
    }
    note_end();
  });
}

void websocket::state::note_end() {
  const beast::websocket::close_reason& reason = socket_.reason();
  if (reason.code != beast::websocket::close_code::none) end.code = reason.code;
  end.reason.assign(reason.reason.data(), reason.reason.size());
  peer_closed_ = true;
}

void websocket::state::check_open() const {
  if (is_over_ || !socket_.is_open() || socket_.next_layer().broken()) throw_ended();
}

void websocket::state::accept(const upgrade& request, const fields& headers) {
  protocol = chosen_protocol(options_.protocols, text_of(request[sec_websocket_protocol]));
  socket_.set_option(beast::websocket::stream_base::decorator(
      [this, &headers](beast::websocket::response_type& answer) {
        answer.set(beast::http::field::server, "motet");  // or Boost.Beast names itself
        for (const field entry : headers) {
          if (is_of_handshake(entry.name)) continue;
          answer.insert(text_for_beast(entry.name), text_for_beast(entry.value));
        }
        if (!protocol.empty()) answer.set(sec_websocket_protocol, protocol);
      }));
  beast_error error;
  socket_.accept(request, error);
  if (error) throw std::system_error(error, "websocket::accept");
  socket_.next_layer().set_idle_check(options_.idle, [this] { ping(); });
}

void websocket::state::ask(const url& address) {
  socket_.set_option(
      beast::websocket::stream_base::decorator([this](beast::websocket::request_type& request) {
        request.set(beast::http::field::user_agent, "motet");
        for (const field entry : options_.headers) {
          request.set(text_for_beast(entry.name), text_for_beast(entry.value));
        }
        if (!options_.protocols.empty())
          request.set(sec_websocket_protocol, joined(options_.protocols));
      }));
  socket_.next_layer().begin_with([this] { return receive_answer(); });
  beast_error error;
  socket_.handshake(address.host_field(), address.target, error);
  if (error) throw bad_reply("websocket: the handshake failed: " + error.message());
  socket_.next_layer().set_idle_check(options_.idle, [this] { ping(); });
}

/// Waits for the server's answer. Returns: what Boost.Beast looks at, with each list on one line;
/// it checks Connection and Sec-WebSocket-Accept. Throws: bad_reply.
std::string websocket::state::receive_answer() {
  const message_head answer = read_head(*input_);
  if (answer.status != 101 || !answer.is_1_1) {
    throw bad_reply("websocket: the server declined with status " + std::to_string(answer.status));
  }
  if (!equal_but_for_case(combined(answer.headers, "upgrade").value_or(""), "websocket")) {
    throw bad_reply("websocket: the server's response has no \"Upgrade: websocket\"");
  }
  // None is offered. Source: RFC 6455, 4.1.
  if (answer.headers.find("sec-websocket-extensions").has_value()) {
    throw bad_reply("websocket: the server chose an extension that was not offered");
  }
  const std::optional<std::string> answer_protocol =
      combined(answer.headers, "sec-websocket-protocol");
  if (answer_protocol.has_value() &&
      std::count(options_.protocols.begin(), options_.protocols.end(), *answer_protocol) == 0) {
    throw bad_reply("websocket: the server chose a protocol that was not offered: " +
                    *answer_protocol);
  }
  protocol = answer_protocol.value_or("");
  std::string text = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const std::string name : {"Connection", "Upgrade", "Sec-WebSocket-Accept"}) {
    const std::optional<std::string> value = combined(answer.headers, name);
    if (value.has_value()) text += name + ": " + *value + "\r\n";
  }
  return text + "\r\n";
}

/// Returns: whether the message is whole.
bool websocket::state::read_piece(beast_error& error) {
  if (message_.size() - size_ < initial_size / 2) {
    const std::size_t maximum = std::max(options_.message, initial_size) + 1;
    message_.resize(std::min(maximum, std::max(initial_size, message_.size() * 2)));
  }
  size_ += socket_.read_some(boost::asio::buffer(message_.data() + size_, message_.size() - size_),
                             error);
  socket_.next_layer().unsent_pong().reset();
  return socket_.is_message_done() && !socket_.next_layer().was_interrupted();
}

void websocket::state::read_message(beast_error& error) {
  if (const auto pong = socket_.next_layer().unsent_pong()) {
    socket_.pong(*pong, error);
    socket_.next_layer().unsent_pong().reset();
  }
  while (!read_piece(error) && !error) {
  }
  // Boost.Beast does not check the end of a text whose last fragment is empty.
  if (!error && socket_.got_text() && ends_within_character({message_.data(), size_})) {
    refuse(beast::websocket::close_code::bad_payload, beast::websocket::error::bad_frame_payload);
  }
  if (refusal_) error = refusal_;
}

void websocket::state::refuse(beast::websocket::close_code code, beast_error error) {
  is_over_ = true;
  refusal_ = error;
  socket_.next_layer().refuse(code);
}

void websocket::state::ping() {
  if (!socket_.is_open()) return;
  const std::lock_guard lock(socket_.next_layer().writing());
  beast_error error;
  socket_.ping({}, error);
  if (error) throw_ended();
}

std::optional<websocket_message> websocket::state::read() {
  const std::lock_guard lock(read_mutex_);
  if (peer_closed_) return std::nullopt;
  check_open();
  beast_error error;
  try {
    read_message(error);
  } catch (const std::system_error&) {
    is_over_ = true;
    if (peer_closed_) return std::nullopt;  // it may close without waiting for ours
    throw;
  } catch (...) {
    // An interrupted farewell cannot be begun again, whatever interrupted it.
    is_over_ = is_over_ || !socket_.is_open();
    throw;
  }
  return tell(error);
}

/// Returns: the message that is whole; nothing if the peer has closed. Throws: as read().
std::optional<websocket_message> websocket::state::tell(const beast_error& error) {
  if (!error) {
    message_.resize(std::exchange(size_, 0));
    return websocket_message{std::exchange(message_, {}), socket_.got_text()};
  }
  is_over_ = true;
  if (peer_closed_ && error == beast::websocket::error::closed) return std::nullopt;
  if (error == boost::asio::error::eof) {
    throw std::system_error(std::make_error_code(std::errc::connection_reset),
                            "the peer of a WebSocket has gone");
  }
  socket_.next_layer().set_client_error();
  throw std::system_error(error, "websocket: the peer violated the protocol");
}

void websocket::state::write(std::span<const std::byte> bytes, bool is_text) {
  const std::lock_guard lock(socket_.next_layer().writing());
  check_open();
  socket_.text(is_text);
  beast_error error;
  const std::uint64_t old_count = socket_.next_layer().sent();
  try {
    socket_.write(boost::asio::buffer(bytes.data(), bytes.size()), error);
  } catch (...) {
    socket_.next_layer().note_cut(old_count);
    throw;
  }
  if (error) throw_ended();
}

void websocket::state::close(std::uint16_t code, std::string_view reason) {
  beast::websocket::close_reason close_message(static_cast<beast::websocket::close_code>(code),
                                               text_for_beast(reason));
  if (!may_be_sent(code))
    throw std::invalid_argument("websocket::close(): code " + std::to_string(code) +
                                " must not be sent");
  const std::lock_guard lock(read_mutex_);
  const std::lock_guard write_lock(socket_.next_layer().writing());
  if (std::exchange(is_over_, true) || socket_.next_layer().broken()) return;
  try {
    beast_error error;
    const bool answered =
        move_on_after(options_.farewell, [&] { socket_.close(close_message, error); });
    if (answered && !error) note_end();
  } catch (const std::system_error&) {  // the peer has gone without an answer
  }
}

}}}  // namespace motet::MOTET_ABI::http
