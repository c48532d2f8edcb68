// SPDX-License-Identifier: MIT
// An HTTP server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/clock.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/http/request.hpp>
#include <motet/net/serve_options.hpp>
#include <motet/stream.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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
  /// How connections are taken, and how the server drains: then a connection answers the request
  /// that it is at, and is closed; one without a request waits 200 ms for another.
  net::serve_options connections = {};
  /// The most bytes of a request's head (431), and of its body (413).
  std::size_t head = std::size_t{16} * 1024;
  std::uint64_t body = std::uint64_t{16} * 1024 * 1024;
  /// The most headers (431).
  std::size_t fields = 100;
  /// How long a client may take for the first byte of its first request, for the rest of a head
  /// (408), and between two requests.
  clock::duration first_byte = std::chrono::seconds(10);
  clock::duration rest_of_head = std::chrono::seconds(10);
  clock::duration idle = std::chrono::seconds(60);
  /// How long it may send nothing of a body (408), or take nothing of an answer.
  clock::duration stall = std::chrono::seconds(30);
  /// How long a handler may take: then it is cancelled, and the answer is 503 if none has begun. A
  /// client may ask for less: Request-Timeout has seconds, with a fraction. 0: no limit.
  clock::duration handling{0};
  /// Called with each answer, in the connection's fiber.
  std::function<void(const answered&)> log = {};
};

/// Called with a request, in a fiber of its connection. What it throws, but for a status_error, is
/// answered with 500, and reported as net::serve_options::on_error says.
using handler = std::function<void(request&, response&)>;

}}}  // namespace motet::MOTET_ABI::http

namespace motet { inline namespace MOTET_ABI { namespace detail {

void serve_http(any_stream connected, const http::serve_options& how, const http::handler& called);

}}}  // namespace motet::MOTET_ABI::detail

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Answers the requests on one connection, until it ends. For servers whose listener is none of
/// motet's, or whose connections are made safe first: see docs/tls.md.
/// Switchpoint.
/// Throws: what the handler throws; what is pending for this fiber.
template <stream S>
  requires(!std::is_reference_v<S>)
void serve_connection(S&& connected, const serve_options& how, const handler& called) {
  detail::serve_http(detail::any_stream(std::move(connected)), how, called);
}

/// Takes connections from `listener`, and calls `called(request&, response&)` for each request, in
/// a fiber for each connection, until it drains.
/// Returns: as the listener's serve().
/// Switchpoint.
/// Throws: as the listener's serve().
template <typename Listener>
std::size_t serve(Listener& listener, const serve_options& how, const handler& called) {
  return listener.serve(how.connections,
                        [&]<stream S>(S peer) { serve_connection(std::move(peer), how, called); });
}
/// The same for ever.
/// Switchpoint.
/// Throws: as the other serve().
template <typename Listener>
void serve(Listener& listener, const handler& called) {
  serve(listener, serve_options(), called);
}

}}}  // namespace motet::MOTET_ABI::http
