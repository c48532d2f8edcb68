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

void add_request_timeout(fields& headers) {
  const std::optional<clock::duration> remaining = time_left();
  if (!remaining.has_value() || headers.find("request-timeout").has_value()) return;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*remaining).count();
  std::string text = std::to_string(milliseconds / 1000) + '.';
  text += std::to_string(1000 + milliseconds % 1000).substr(1);
  headers.add("Request-Timeout", text);
}

std::string head_of(const client_request& request) {
  fields headers = request.headers;
  add_request_timeout(headers);
  std::string head = request.method + ' ' + request.target.target + " HTTP/1.1\r\n";
  if (!headers.find("host").has_value()) head += "Host: " + request.target.host_field() + "\r\n";
  if (!headers.find("user-agent").has_value()) head += "User-Agent: motet\r\n";
  fields_access::append(headers, head);
  const std::size_t size = request.with_body ? request.options->body.size() : 0;
  if (request.streams() && request.length.has_value()) {
    head += "Content-Length: " + std::to_string(*request.length) + "\r\n";
  } else if (request.streams()) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (size > 0 || request.method == "POST" || request.method == "PUT") {
    head += "Content-Length: " + std::to_string(size) + "\r\n";
  }
  return head + "\r\n";
}

/// Returns: the error that stopped the transmission; null if all was sent.
std::exception_ptr try_to_send(connection& channel, std::string_view text, clock::duration stall) {
  try {
    send_all(channel.stream.output(), std::as_bytes(std::span(text)), stall);
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
  constexpr std::size_t longest_short_body = std::size_t{16} * 1024;
  return streams() || (with_body && options->body.size() > longest_short_body);
}

bool client_request::can_be_repeated() const noexcept {
  return !streams() &&
         std::find(std::begin(idempotent), std::end(idempotent), method) != std::end(idempotent);
}

std::exception_ptr client_request::send(connection& channel, clock::duration stall) const {
  std::string head = head_of(*this);
  if (with_body && !streams()) head += options->body;
  std::exception_ptr failure = try_to_send(channel, head, stall);
  if (!streams()) return failure;
  std::array<std::byte, std::size_t{16} * 1024> piece;
  std::uint64_t total = 0;
  for (bool incomplete = true; incomplete && failure == nullptr;) {
    const std::size_t size = options->body_from(piece);
    if (size > piece.size())
      throw std::length_error("body_from(): returned more bytes than fit into the buffer");
    incomplete = size > 0;
    total += size;
    if (!length.has_value()) {
      failure = try_to_send(channel, chunk_of(std::span(piece).first(size)), stall);
    } else if (incomplete ? total > *length : total < *length) {
      throw std::length_error("body_from(): returned " + std::to_string(total) +
                              " bytes, but Content-Length is " + std::to_string(*length));
    } else {
      failure = try_to_send(channel, {reinterpret_cast<const char*>(piece.data()), size}, stall);
    }
  }
  return failure;
}

}}}  // namespace motet::MOTET_ABI::http
