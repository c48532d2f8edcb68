// SPDX-License-Identifier: MIT
// An HTTP server.
#pragma once

#include <cstddef>
#include <functional>
#include <motet/base/call_site.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/http/request.hpp>
#include <motet/http/serve_options.hpp>
#include <motet/io/stream.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Called with a request, in a fiber of its connection. What it throws, but for a status_error, is
/// answered with 500, and reported as net::serve_options::on_error says.
using handler = std::function<void(request&, response&)>;

}}}  // namespace motet::MOTET_ABI::http

namespace motet { inline namespace MOTET_ABI { namespace detail {

void serve_http(any_stream peer_stream, const http::serve_options& options,
                const http::handler& function);

}}}  // namespace motet::MOTET_ABI::detail

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Answers the requests on one connection, until it ends. For servers whose listener is not one of
/// motet's, or whose connections are secured first: see docs/tls.md.
/// Switchpoint.
/// Throws: what the handler throws; a pending interruption.
template <stream S>
  requires(!std::is_reference_v<S>)
void serve_connection(S&& peer_stream, const serve_options& options, const handler& function) {
  detail::serve_http(detail::any_stream(std::forward<S>(peer_stream)), options, function);
}

/// Takes connections from `listener`, and calls `function(request&, response&)` for each request,
/// in a fiber for each connection, until it drains.
/// Returns: as the listener's serve().
/// Switchpoint.
/// Throws: as the listener's serve().
template <typename Listener>
std::size_t serve(Listener& listener, const serve_options& options, const handler& function,
                  call_site site = call_site::here()) {
  const auto answer = [&]<stream S>(S peer) {
    serve_connection(std::move(peer), options, function);
  };
  if constexpr (requires { listener.serve(options.connections, answer, site); }) {
    return listener.serve(options.connections, answer, site);
  } else {
    return listener.serve(options.connections, answer);
  }
}
/// The same, with default options; serves until it is interrupted.
/// Switchpoint.
/// Throws: as the other serve().
template <typename Listener>
void serve(Listener& listener, const handler& function, call_site site = call_site::here()) {
  serve(listener, serve_options(), function, site);
}

}}}  // namespace motet::MOTET_ABI::http
