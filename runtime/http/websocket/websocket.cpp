// SPDX-License-Identifier: MIT
// See motet/http/websocket.hpp: how a WebSocket begins.
#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <motet/http/websocket.hpp>
#include <motet/net/tcp_stream.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "http/reason_phrase.hpp"
#include "http/text.hpp"
#include "http/websocket/lists.hpp"
#include "http/websocket/state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Whether `text` is 16 bytes in base64. Source: RFC 6455, 4.2.1; RFC 4648, 3.5 and 4.
bool is_key(std::string_view text) noexcept {
  constexpr std::string_view last_digits = "AQgw";  // whose lower bits are 0
  if (text.size() != 24 || !text.ends_with("==")) return false;
  if (last_digits.find(text[21]) == std::string_view::npos) return false;
  return std::all_of(text.begin(), text.begin() + 21, [](char c) {
    const char letter = lower(c);
    return is_digit(c) || (letter >= 'a' && letter <= 'z') || c == '+' || c == '/';
  });
}

/// Whether there is no header of this name, or `is_one` holds for each element of its list.
template <typename IsOne>
bool may_be_list(const fields& headers, std::string_view name, IsOne is_one) {
  const std::optional<std::string> list = combined(headers, name);
  return !list.has_value() || is_list(*list, is_one);
}

/// Throws: status_error unless the request asks for a WebSocket.
void check(const request& request, const upgrade& upgrade_request, response& answer) {
  const fields& headers = request.headers();
  if (request.method() != "GET") throw standard_error(400);
  const std::string version = combined(headers, "sec-websocket-version").value_or("");
  if (!version.empty() && !number_of(version).has_value()) {
    throw standard_error(400);
  }
  if (version != "13" || !boost::beast::websocket::is_upgrade(upgrade_request)) {
    answer.header("Connection", "upgrade").header("Upgrade", "websocket");
    answer.header("Sec-WebSocket-Version", "13");
    throw standard_error(426);
  }
  const bool has_key = is_key(combined(headers, "sec-websocket-key").value_or(""));
  if (!has_key || request.length() != 0 || headers.find("expect").has_value()) {
    throw standard_error(400);
  }
  if (!may_be_list(headers, "sec-websocket-protocol", is_token) ||
      !may_be_list(headers, "sec-websocket-extensions", is_extension)) {
    throw standard_error(400);
  }
}

/// Returns: what Boost.Beast looks at, which is the first line of each list only.
upgrade said_to_beast(const request& request, bool is_1_1) {
  upgrade upgrade_request(boost::beast::http::verb::get, text_for_beast(request.target()),
                          is_1_1 ? 11 : 10);
  for (const std::string_view name : {"host", "connection", "upgrade", "sec-websocket-key",
                                      "sec-websocket-version", "sec-websocket-protocol"}) {
    const std::optional<std::string> value = combined(request.headers(), name);
    if (value.has_value()) upgrade_request.set(text_for_beast(name), text_for_beast(*value));
  }
  return upgrade_request;
}

/// Throws: std::invalid_argument for headers that are the handshake's own.
void check(const fields& headers) {
  for (const std::string_view name :
       {"host", "connection", "upgrade", "sec-websocket-key", "sec-websocket-version",
        "sec-websocket-extensions", "sec-websocket-protocol"}) {
    if (!headers.find(name).has_value()) continue;
    throw std::invalid_argument("websocket: the caller must not set " + std::string(name));
  }
}

/// Throws: std::invalid_argument for what is no address of ws or wss.
url parse_address(std::string_view address) {
  const std::string_view scheme = address.substr(0, address.find(':'));
  const bool is_secure = equal_but_for_case(scheme, "wss");
  if (!is_secure && !equal_but_for_case(scheme, "ws")) {
    throw std::invalid_argument("websocket: not an address of ws or wss: " + std::string(address));
  }
  if (address.find('#') != std::string_view::npos) {
    throw std::invalid_argument("websocket: the address must not have a fragment: " +
                                std::string(address));
  }
  std::string http_address(is_secure ? "https" : "http");
  return url::parse(http_address.append(address.substr(scheme.size())));
}

}  // namespace

websocket::websocket(std::unique_ptr<state> socket) noexcept : state_(std::move(socket)) {}
websocket::websocket(websocket&&) noexcept = default;
websocket& websocket::operator=(websocket&&) noexcept = default;
websocket::~websocket() = default;

websocket websocket::accept(request& request, response& answer, const websocket_options& options) {
  const upgrade upgrade_request = said_to_beast(request, request.connection_.asked().is_1_1);
  const fields headers = answer.headers();
  check(request, upgrade_request, answer);
  request.connection_.answer().hand_over();
  auto socket = std::make_unique<state>(request.connection_, options);
  socket->accept(upgrade_request, headers);
  return websocket(std::move(socket));
}

websocket websocket::connect(std::string_view address, const websocket_options& options) {
  const url target = parse_address(address);
  check(options.headers);
  (void)joined(options.protocols);
  return with_timeout(options.connect, [&] {
    secure_client secure(options.trusted_file);
    net::tcp_stream carrier = net::tcp_stream::connect(target.host, target.port);
    detail::any_stream stream = target.is_secure ? secure.connect(std::move(carrier), target.host)
                                                 : detail::any_stream(std::move(carrier));
    auto socket = std::make_unique<state>(std::move(stream), secure, options);
    socket->ask(target);
    return websocket(std::move(socket));
  });
}

std::optional<websocket_message> websocket::read() {
  return state_->read();
}

void websocket::write(std::string_view text) {
  state_->write(std::as_bytes(std::span(text)), true);
}

void websocket::write(std::span<const std::byte> bytes) {
  state_->write(bytes, false);
}

void websocket::close(std::uint16_t code, std::string_view reason) {
  if (reason.size() > 123)
    throw std::invalid_argument("websocket::close(): the reason is longer than 123 bytes");
  state_->close(code, reason);
}

const websocket_end& websocket::ended() const noexcept {
  return state_->end;
}

const std::string& websocket::protocol() const noexcept {
  return state_->protocol;
}

}}}  // namespace motet::MOTET_ABI::http
