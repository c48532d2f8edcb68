// SPDX-License-Identifier: MIT
// Requests and responses, as a handler of a server sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/http/fields.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

class server_connection;

/// Thrown by a handler to respond with an error status, 400 to 599. Errors in a request's body are
/// reported by this, too: a handler that does not catch it responds correctly.
class status_error : public std::runtime_error {
 public:
  /// `text` is sent to the client.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a status that is not an error status.
  status_error(int status, const std::string& text);

  /// Not a switchpoint.
  int status() const noexcept { return status_; }

 private:
  int status_;
};

/// A request and its body, which is read as it arrives. Lives as long as its handler; used by one
/// fiber at a time.
class request {
 public:
  request(const request&) = delete;
  request& operator=(const request&) = delete;

  /// Returns: the method as received, for example "GET"; methods are case-sensitive.
  /// Not a switchpoint.
  std::string_view method() const noexcept;
  /// Returns: the request target as received: "/a%20page?size=3".
  /// Not a switchpoint.
  std::string_view target() const noexcept;
  /// Returns: the path in it, decoded: "/a page".
  /// Not a switchpoint.
  std::string_view path() const noexcept;
  /// Returns: the decoded value of a query parameter: "3" for "size";
  ///          std::nullopt if it is absent.
  ///
  /// Not a switchpoint.
  std::optional<std::string> query(std::string_view name) const;
  /// Returns: the part of the path that matches `{name}` in the router's pattern; empty if the
  ///          pattern has no such name.
  /// Not a switchpoint.
  std::string_view parameter(std::string_view name) const noexcept;

  /// Not a switchpoint.
  const fields& headers() const noexcept;
  /// Returns: the value of the first header of this name; empty if it is absent.
  /// Not a switchpoint.
  std::string_view header(std::string_view name) const noexcept;
  /// Returns: the size of the body in bytes; std::nullopt if known only at its end.
  /// Not a switchpoint.
  std::optional<std::uint64_t> length() const noexcept;

  /// Reads the next bytes of the body.
  /// Sends "100 Continue" first if the client expects it.
  /// Returns: bytes read, at most the size of `buffer`; 0 at the end.
  /// Switchpoint.
  /// Throws: status_error: 400 for a malformed body, 413 for more than
  ///         serve_options::body, 408 if the client pauses for serve_options::stall;
  ///         std::system_error; unexpected_eof; a pending interruption.
  std::size_t read(std::span<std::byte> buffer);
  /// Returns: the rest of the body.
  /// Switchpoint.
  /// Throws: as read().
  std::string text();

  /// Returns: the descriptor of the connection, for move_on_when_closed(); -1 if it has none.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  friend class server_connection;
  friend class router;
  friend class websocket;
  explicit request(server_connection& connection) noexcept : connection_(connection) {}

  server_connection& connection_;
};

/// The response of a server. A body of at most 16 KiB is sent with its length when the handler
/// returns; a longer one, or one that is flushed, goes in chunks, unless a Content-Length was set.
class response {
 public:
  response(const response&) = delete;
  response& operator=(const response&) = delete;

  /// 200 unless something else is set.
  /// Not a switchpoint.
  /// Throws: std::logic_error if the head has been sent; std::invalid_argument for anything but 200
  ///         to 599.
  response& status(int code);
  /// Sets a header in place of any others of its name. Date, Content-Length, Transfer-Encoding and
  /// Connection are added automatically.
  /// Not a switchpoint.
  /// Throws: as fields::set(); std::logic_error if the head has been sent.
  response& header(std::string_view name, std::string_view value);
  /// Not a switchpoint.
  /// Throws: std::logic_error if the head has been sent.
  fields& headers();

  /// Adds to the body. What is written in answer to HEAD is not sent.
  /// Switchpoint.
  /// Throws: std::system_error if the client is gone; timed_out if it accepts nothing for
  ///         serve_options::stall; std::logic_error for more bytes than the Content-Length;
  ///         a pending interruption.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Sends what has been written.
  /// Switchpoint.
  /// Throws: as write().
  void flush();

  /// Returns: whether the head has been sent, so that the status can no longer be changed.
  /// Not a switchpoint.
  bool begun() const noexcept;

 private:
  friend class server_connection;
  friend void send_file(request& message, response& answer, const std::string& path);
  explicit response(server_connection& connection) noexcept : connection_(connection) {}

  server_connection& connection_;
};

}}}  // namespace motet::MOTET_ABI::http
