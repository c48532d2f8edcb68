// SPDX-License-Identifier: MIT
// The limits that an HTTP server sets for its clients, and what it reports about them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/net/serve_options.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// How a request was answered, for a log.
struct answered {
  std::string_view method;
  std::string_view target;
  int status;
  std::uint64_t bytes;   // of the body that was sent
  clock::duration took;  // from the end of the request's head to the end of the answer
};

struct serve_options {
  /// How connections are accepted, and how the server drains: a connection then finishes its
  /// current request and is closed; one without a request waits a second for another.
  net::serve_options connections = {};
  /// The maximum size in bytes of a request's head (431), and of its body (413).
  std::size_t head = std::size_t{16} * 1024;
  std::uint64_t body = std::uint64_t{16} * 1024 * 1024;
  /// The maximum number of headers (431).
  std::size_t fields = 100;
  /// How long a client may take for the first byte of its first request, for the rest of a head
  /// (408), and between two requests.
  clock::duration first_byte = std::chrono::seconds(10);
  clock::duration rest_of_head = std::chrono::seconds(10);
  clock::duration idle = std::chrono::seconds(60);
  /// The longest pause of a client in the body of a request (408), or in receiving a response.
  clock::duration stall = std::chrono::seconds(30);
  /// The longest time for a handler; then it is cancelled, and the response is 503 if none has
  /// begun. A client may request less: Request-Timeout, in seconds, with a fraction. 0: no limit.
  clock::duration handling{0};
  /// When for 100 ms every answer has come later than this after its request, requests that have
  /// waited longer than this are refused with 503; until then, only those that have waited 100 ms.
  /// 5 ms is a good choice. 0: requests are never refused, and wait.
  clock::duration shed_when_late{0};
  /// Called in the connection's fiber after each response to a handler's request, complete or
  /// aborted; not for malformed requests, which no handler sees.
  std::function<void(const answered&)> log = {};
};

}}}  // namespace motet::MOTET_ABI::http
