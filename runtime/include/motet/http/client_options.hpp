// SPDX-License-Identifier: MIT
// The limits that an HTTP client sets for servers, and the parts of a request.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/http/fields.hpp>
#include <span>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct client_options {
  /// The maximum number of connections to one host; further calls wait.
  std::size_t connections_per_host = 8;
  /// How long an unused connection is kept.
  clock::duration idle = std::chrono::seconds(55);
  /// Time limits: for connecting, with look-up and handshake; for the head of a response; and for a
  /// pause of the server while it receives or sends a body.
  clock::duration connect = std::chrono::seconds(10);
  clock::duration first_byte = std::chrono::seconds(30);
  clock::duration stall = std::chrono::seconds(30);
  /// The maximum number of redirects that are followed.
  std::size_t redirects = 10;
  /// How many times an idempotent request (GET, HEAD, PUT, DELETE, OPTIONS) is retried when its
  /// connection has failed before any of the response had arrived.
  std::size_t retries = 2;
  /// The maximum size in bytes of an answer's head, and of a body that reply::text() returns.
  std::size_t head = std::size_t{64} * 1024;
  std::size_t text = std::size_t{64} * 1024 * 1024;
  /// For https: a file with the trusted certificates, in PEM; if empty, the system's.
  std::string trusted_file = {};
};

/// What a request has besides its method and address.
struct request_options {
  fields headers = {};
  std::string body = {};
  /// Called for the next bytes of a streamed request body; returns the number of bytes that it
  /// stored, 0 at the end. Such a request is neither retried nor redirected. It is sent in chunks,
  /// unless `headers` has a Content-Length; then the body must have that many bytes. Not called
  /// again after the server has refused the request.
  std::function<std::size_t(std::span<std::byte>)> body_from = {};
};

}}}  // namespace motet::MOTET_ABI::http
