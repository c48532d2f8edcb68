// SPDX-License-Identifier: MIT
// See http/client/client_request.hpp.
#include "http/client/client_request.hpp"

#include <algorithm>
#include <array>
#include <motet/cancellation/cancel.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "http/fields_access.hpp"
#include "http/send.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::string_view idempotent[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};

void add_time_left(fields& to) {
  const std::optional<clock::duration> left = time_left();
  if (!left.has_value() || to.find("request-timeout").has_value()) return;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*left).count();
  std::string text = std::to_string(milliseconds / 1000) + '.';
  text += std::to_string(1000 + milliseconds % 1000).substr(1);
  to.add("Request-Timeout", text);
}

std::string head_of(const client_request& asked) {
  fields headers = asked.headers;
  add_time_left(headers);
  std::string head = asked.method + ' ' + asked.to.target + " HTTP/1.1\r\n";
  if (!headers.find("host").has_value()) head += "Host: " + asked.to.host_field() + "\r\n";
  if (!headers.find("user-agent").has_value()) head += "User-Agent: motet\r\n";
  fields_access::append(headers, head);
  const std::size_t size = asked.with_body ? asked.how->body.size() : 0;
  if (asked.streams() && asked.length.has_value()) {
    head += "Content-Length: " + std::to_string(*asked.length) + "\r\n";
  } else if (asked.streams()) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (size > 0 || asked.method == "POST" || asked.method == "PUT") {
    head += "Content-Length: " + std::to_string(size) + "\r\n";
  }
  return head + "\r\n";
}

/// Returns: the error that stopped the transmission; null if all was sent.
std::exception_ptr try_to_send(connection& by, std::string_view text, clock::duration stall) {
  try {
    send_all(by.stream.output(), std::as_bytes(std::span(text)), stall);
  } catch (const std::system_error&) {
    return std::current_exception();
  }
  return nullptr;
}

/// Returns: a chunk with these bytes; without bytes the last chunk.
std::string chunk_of(std::span<const std::byte> bytes) {
  std::string chunk;
  append_number(chunk, bytes.size(), 16);
  chunk.append("\r\n").append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return chunk.append("\r\n");
}

}  // namespace

bool client_request::is_long() const noexcept {
  constexpr std::size_t taken_at_once = 16 * 1024;
  return streams() || (with_body && how->body.size() > taken_at_once);
}

bool client_request::can_be_repeated() const noexcept {
  return !streams() &&
         std::find(std::begin(idempotent), std::end(idempotent), method) != std::end(idempotent);
}

std::exception_ptr client_request::send(connection& by, clock::duration stall) const {
  std::string head = head_of(*this);
  if (with_body && !streams()) head += how->body;
  std::exception_ptr cut = try_to_send(by, head, stall);
  if (!streams()) return cut;
  std::array<std::byte, std::size_t{16} * 1024> piece;
  std::uint64_t given = 0;
  for (bool more = true; more && cut == nullptr;) {
    const std::size_t size = how->body_from(piece);
    if (size > piece.size())
      throw std::length_error("body_from(): returned more bytes than fit into the buffer");
    more = size > 0;
    given += size;
    if (!length.has_value()) {
      cut = try_to_send(by, chunk_of(std::span(piece).first(size)), stall);
    } else if (more ? given > *length : given < *length) {
      throw std::length_error("body_from(): returned " + std::to_string(given) +
                              " bytes, but Content-Length is " + std::to_string(*length));
    } else {
      cut = try_to_send(by, {reinterpret_cast<const char*>(piece.data()), size}, stall);
    }
  }
  return cut;
}

}}}  // namespace motet::MOTET_ABI::http
