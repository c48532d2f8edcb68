// SPDX-License-Identifier: MIT
// What an HTTP client allows servers, and what a request has.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <motet/clock.hpp>
#include <motet/http/fields.hpp>
#include <span>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct client_options {
  /// How many connections to one host there are at most; further calls wait for one.
  std::size_t connections_per_host = 8;
  /// How long an unused connection is kept.
  clock::duration idle = std::chrono::seconds(55);
  /// How long a connection may take to be made, with its look-up and its handshake; the head of an
  /// answer to come; the server to take nothing of a body, or to send nothing of one.
  clock::duration connect = std::chrono::seconds(10);
  clock::duration first_byte = std::chrono::seconds(30);
  clock::duration stall = std::chrono::seconds(30);
  /// How often another address is asked because an answer says so.
  std::size_t redirects = 10;
  /// How often a request that may be repeated without harm (GET, HEAD, PUT, DELETE, OPTIONS) is
  /// repeated when its connection has failed before any of the answer had come.
  std::size_t retries = 2;
  /// The most bytes of an answer's head, and of a body that reply::text() returns.
  std::size_t head = std::size_t{64} * 1024;
  std::size_t text = std::size_t{64} * 1024 * 1024;
  /// For https: the certificates to be trusted, in PEM; if there is no file, the system's.
  std::string trusted_file = {};
};

/// What a request has beside its method and address.
struct request_options {
  fields headers = {};
  std::string body = {};
  /// Called for the next bytes of a body that is sent as it comes; returns how many it has put
  /// there, 0 at the end. A request with it is not repeated, nor sent to another address. It goes
  /// in chunks, unless `headers` has a Content-Length: then that many bytes must come. Not called
  /// again when the server has refused the request.
  std::function<std::size_t(std::span<std::byte>)> body_from = {};
};

}}}  // namespace motet::MOTET_ABI::http
