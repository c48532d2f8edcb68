// SPDX-License-Identifier: MIT
// A client's request, as it is sent.
#pragma once

#include <cstdint>
#include <exception>
#include <motet/base/clock.hpp>
#include <motet/http/client.hpp>
#include <motet/http/fields.hpp>
#include <optional>
#include <string>

#include "http/client/connection_pool.hpp"
#include "http/client/url.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Perhaps it is sent several times, to one address or another.
struct client_request {
  std::string method;
  url target;
  fields headers;
  const request_options* options;
  std::optional<std::uint64_t> length = {};  // of what how->body_from gives, if that is known
  bool with_body = true;

  bool streams() const noexcept { return with_body && options->body_from; }
  /// Whether it exceeds what the kernel buffers, so that a response may arrive before all is sent.
  bool is_long() const noexcept;
  /// Whether receiving it twice is harmless (idempotent methods). Source: RFC 9110, 9.2.2.
  bool can_be_repeated() const noexcept;

  /// Returns: the error that stopped the transmission; null if all was sent. A server may
  ///          respond before it has read the whole request, and close the connection.
  /// Throws: what how->body_from throws; std::length_error if that returns more than its
  ///         buffer's size, or ends before or after `length` bytes; a pending
  ///         interruption.
  std::exception_ptr send(connection& channel, clock::duration stall) const;
};

}}}  // namespace motet::MOTET_ABI::http
