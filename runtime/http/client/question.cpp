// SPDX-License-Identifier: MIT
// See http/client/question.hpp.
#include "http/client/question.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <motet/cancel.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "http/send.hpp"
#include "http/wire_of.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::string_view harmless[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

void add_time_left(fields& to) {
  const std::optional<clock::duration> left = time_left();
  if (!left.has_value() || to.find("request-timeout").has_value()) return;
  std::array<char, 32> text;
  const int size =
      std::snprintf(text.data(), text.size(), "%.3f", std::chrono::duration<double>(*left).count());
  to.add("Request-Timeout", {text.data(), static_cast<std::size_t>(size)});
}

std::string head_of(const question& asked) {
  fields headers = asked.headers;
  add_time_left(headers);
  std::string head = asked.method + ' ' + asked.to.target + " HTTP/1.1\r\n";
  if (!headers.find("host").has_value()) head += "Host: " + asked.to.host_field() + "\r\n";
  if (!headers.find("user-agent").has_value()) head += "User-Agent: motet\r\n";
  head += wire_of::text(headers);
  const std::size_t size = asked.with_body ? asked.how->body.size() : 0;
  if (asked.streams()) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (size > 0 || asked.method == "POST" || asked.method == "PUT") {
    head += "Content-Length: " + std::to_string(size) + "\r\n";
  }
  return head + "\r\n";
}

void send_stream(connection& by, const question& asked, clock::duration stall) {
  std::array<std::byte, std::size_t{16} * 1024> piece;
  std::size_t size = 0;
  do {
    size = asked.how->body_from(piece);
    std::array<char, 24> line;
    const int length = std::snprintf(line.data(), line.size(), "%zx\r\n", size);
    std::string chunk(line.data(), static_cast<std::size_t>(length));
    chunk.append(reinterpret_cast<const char*>(piece.data()), size).append("\r\n");
    send_all(by.stream.output(), bytes_of(chunk), stall);
  } while (size > 0);
}

}  // namespace

bool question::can_be_repeated() const noexcept {
  return !streams() &&
         std::find(std::begin(harmless), std::end(harmless), method) != std::end(harmless);
}

std::exception_ptr question::send(connection& by, clock::duration stall) const {
  try {
    std::string head = head_of(*this);
    if (with_body && !streams()) head += how->body;
    send_all(by.stream.output(), bytes_of(head), stall);
    if (streams()) send_stream(by, *this, stall);
  } catch (const std::system_error&) {
    return std::current_exception();
  }
  return nullptr;
}

}}}  // namespace motet::MOTET_ABI::http
