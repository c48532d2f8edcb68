// SPDX-License-Identifier: MIT
// See http/client/reply.hpp, and motet/http/client.hpp. Source: RFC 9112, 6.3.
#include "http/client/reply.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <motet/base/errors.hpp>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/http/request.hpp>
#include <optional>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::size_t most_fields = 1000;
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

}  // namespace

bool reply::state::read_head(bool to_head) {
  do {
    const std::optional<std::string_view> text = lease_->input.until("\r\n\r\n", options_.head);
    if (!text.has_value()) return false;
    if (!lease_->parser.parse_response(*text, most_fields, head)) {
      throw bad_reply("the response is not valid HTTP");
    }
  } while (head.status / 100 == 1 && head.status != 101);
  begin_body(to_head);
  has_head_ = true;
  settle();
  return true;
}

void reply::state::begin_body(bool to_head) {
  keeps_alive_ = head.keep_alive && head.status != 101;
  if (to_head || head.status == 101 || head.status == 204 || head.status == 304) {
    body_.begin_none();
  } else if (head.chunked || head.length.has_value()) {
    body_.begin(head, no_limit, options_.stall);
  } else {
    keeps_alive_ = false;
    body_.begin_to_end(no_limit, options_.stall);
  }
}

void reply::state::end_sending(bool reusable) {
  request_ = reusable ? request_state::sent_and_reusable : request_state::sent;
  settle();
}

void reply::state::read_ahead() {
  std::array<std::byte, std::size_t{16} * 1024> piece;
  while (ahead_.size() < options_.text) {
    const std::size_t size = read_body(piece);
    if (size == 0) return;
    ahead_.append(reinterpret_cast<const char*>(piece.data()), size);
  }
}

std::size_t reply::state::read(std::span<std::byte> buffer) {
  detail::here_core().deliver();
  const std::size_t size = std::min(buffer.size(), ahead_.size() - offset_);
  if (size == 0) return read_body(buffer);
  std::memcpy(buffer.data(), ahead_.data() + offset_, size);
  offset_ += size;
  if (offset_ == ahead_.size()) {
    ahead_ = std::string();
    offset_ = 0;
  }
  return size;
}

std::size_t reply::state::read_body(std::span<std::byte> buffer) {
  if (body_.ended()) return 0;
  try {
    const std::size_t size = body_.read(buffer);
    settle();
    return size;
  } catch (const status_error& error) {
    if (error.status() == 408) throw timed_out(call_site::here());
    throw bad_reply(error.what());
  }
}

/// Gives the connection back once the body has ended. Bytes behind the body are not a response to
/// any request: then the connection is closed, because the next request would take them for one.
void reply::state::settle() {
  if (request_ == request_state::sending || !has_head_ || !body_.ended()) return;
  if (std::exchange(is_settled_, true)) return;
  const bool is_reusable = keeps_alive_ && request_ == request_state::sent_and_reusable;
  if (is_reusable && lease_->input.peek(0).empty()) {
    lease_.give_back();
  } else {
    lease_.close();
  }
}

std::string reply::state::text() {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = read(buffer)) {
    if (text.size() + size > options_.text)
      throw bad_reply("reply::text(): the body is longer than client_options::text");
    text.append(reinterpret_cast<const char*>(buffer.data()), size);
  }
  return text;
}

reply::reply(std::unique_ptr<state> answer) noexcept : state_(std::move(answer)) {}
reply::reply(reply&&) noexcept = default;
reply& reply::operator=(reply&&) noexcept = default;
reply::~reply() = default;

int reply::status() const noexcept {
  return state_->head.status;
}

const fields& reply::headers() const noexcept {
  return state_->head.headers;
}

std::string_view reply::header(std::string_view name) const noexcept {
  return headers().get(name);
}

const std::string& reply::url() const noexcept {
  return state_->address;
}

std::optional<std::uint64_t> reply::length() const noexcept {
  return state_->head.length;
}

std::size_t reply::read(std::span<std::byte> buffer) {
  return state_->read(buffer);
}

std::string reply::text() {
  return state_->text();
}

}}}  // namespace motet::MOTET_ABI::http
