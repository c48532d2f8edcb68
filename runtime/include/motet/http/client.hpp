// SPDX-License-Identifier: MIT
// An HTTP client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/http/client_options.hpp>
#include <motet/http/fields.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct client_request;

/// Thrown for a response that is not valid HTTP, or larger than allowed, and for more redirects
/// than allowed.
class bad_reply : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A response, whose body is read as it arrives. Move-only. It holds a connection of its client,
/// which must outlive it, until the body has been read. Used by one fiber at a time, on the
/// client's thread.
class reply {
 public:
  reply(reply&&) noexcept;
  reply& operator=(reply&&) noexcept;
  /// Closes the connection unless the body has been read to its end.
  /// Switchpoint; nothing interrupts it.
  ~reply();

  /// Not a switchpoint.
  int status() const noexcept;
  /// Not a switchpoint.
  const fields& headers() const noexcept;
  /// Returns: the value of the first header of this name; empty if it is absent.
  /// Not a switchpoint.
  std::string_view header(std::string_view name) const noexcept;
  /// Returns: the address that has answered, which may differ from the one requested.
  /// Not a switchpoint.
  const std::string& url() const noexcept;
  /// Returns: the size of the body in bytes; std::nullopt if known only at its end.
  /// Not a switchpoint.
  std::optional<std::uint64_t> length() const noexcept;

  /// Reads the next bytes of the body.
  /// Returns: bytes read, at most as many as `buffer` has; 0 at the end.
  /// Switchpoint.
  /// Throws: std::system_error; timed_out if nothing arrives within client_options::stall;
  ///         unexpected_eof if the connection ends first; bad_reply; a pending interruption.
  std::size_t read(std::span<std::byte> buffer);
  /// Returns: the rest of the body.
  /// Switchpoint.
  /// Throws: as read(); bad_reply if it is longer than client_options::text.
  std::string text();

 private:
  friend class client;
  class state;
  explicit reply(std::unique_ptr<state> data) noexcept;

  std::unique_ptr<state> state_;
};

/// Sends requests to servers, and reuses connections. For the fibers of one thread; each thread
/// needs a client of its own.
class client {
 public:
  /// Not a switchpoint.
  /// Throws: std::system_error for a trusted_file that cannot be used.
  explicit client(const client_options& options = {});
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  /// Not a switchpoint, except to close idle connections.
  ~client();

  /// Sends a request, and waits for the head of the response. The caller's time limit is sent as
  /// Request-Timeout, in seconds. Redirections are followed with the same method, but as GET after
  /// 303, and after 301 and 302 if the method was POST; Authorization and Cookie are not sent to
  /// another host.
  /// Returns: the response, whatever its status.
  /// Switchpoint.
  /// Throws: std::invalid_argument for an invalid address, and as fields::add(); std::system_error;
  ///         timed_out if a time limit expires; bad_reply; tls::errc; std::logic_error for https
  ///         without motet-tls; a pending interruption.
  reply request(std::string_view method, std::string_view address,
                const request_options& options = {});
  reply get(std::string_view address);
  reply post(std::string_view address, std::string body, std::string_view content_type);

 private:
  friend class reply;
  class pool;

  static reply ask(pool& connections, const client_request& request);
  static reply ask_once(pool& connections, const client_request& request, bool fresh,
                        bool& nothing_came);

  std::unique_ptr<pool> pool_;
};

}}}  // namespace motet::MOTET_ABI::http
