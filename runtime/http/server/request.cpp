// SPDX-License-Identifier: MIT
// See motet/http/request.hpp; what the two show is in http/server/server_connection.hpp.
#include <array>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/http/request.hpp>
#include <stdexcept>

#include "http/server/server_connection.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

status_error::status_error(int status, const std::string& text)
    : std::runtime_error(text), status_(status) {
  if (status < 400 || status > 599) {
    throw std::invalid_argument("status_error: the status must be 400 to 599, not " +
                                std::to_string(status));
  }
}

std::string_view request::method() const noexcept {
  return connection_.asked().method;
}

std::string_view request::target() const noexcept {
  return connection_.asked().target;
}

std::string_view request::path() const noexcept {
  return connection_.path();
}

std::optional<std::string> request::query(std::string_view name) const {
  return parameter_of(connection_.query(), name);
}

std::string_view request::parameter(std::string_view name) const noexcept {
  for (const auto& [key, value] : connection_.parameters()) {
    if (key == name) return value;
  }
  return {};
}

const fields& request::headers() const noexcept {
  return connection_.asked().headers;
}

std::string_view request::header(std::string_view name) const noexcept {
  const std::string_view authority = connection_.authority();
  if (!authority.empty() && equal_but_for_case(name, "host")) return authority;
  return headers().get(name);
}

std::optional<std::uint64_t> request::length() const noexcept {
  if (connection_.asked().chunked) return std::nullopt;
  return connection_.asked().length.value_or(0);
}

std::size_t request::read(std::span<std::byte> buffer) {
  detail::here_core().deliver();
  return connection_.read_body(buffer);
}

std::string request::text() {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = read(buffer)) {
    text.append(reinterpret_cast<const char*>(buffer.data()), size);
  }
  return text;
}

int request::native_handle() const noexcept {
  return connection_.native_handle();
}

fields& response::headers() {
  if (begun()) throw std::logic_error("response: the header section has already been sent");
  return connection_.answer().headers;
}

response& response::status(int code) {
  if (code < 200 || code > 599) {
    throw std::invalid_argument("response::status(): the code must be 200 to 599, not " +
                                std::to_string(code));
  }
  (void)headers();
  connection_.answer().status = code;
  return *this;
}

response& response::header(std::string_view name, std::string_view value) {
  headers().set(name, value);
  return *this;
}

void response::write(std::span<const std::byte> bytes) {
  detail::here_core().deliver();
  connection_.answer().write(bytes);
}

void response::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void response::flush() {
  detail::here_core().deliver();
  connection_.answer().flush();
}

bool response::begun() const noexcept {
  return connection_.answer().begun();
}

}}}  // namespace motet::MOTET_ABI::http
