// SPDX-License-Identifier: MIT
// See http/client/secure.hpp.
#include "http/client/secure.hpp"

#include <stdexcept>  // IWYU pragma: keep, for the build without TLS
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace http {

#ifdef MOTET_HTTP_TLS

namespace {

tls::client_context context_for(const std::string& trusted_file) {
  return tls::client_context({.trusted_file = trusted_file, .protocols = {"http/1.1"}});
}

}  // namespace

secure_client::secure_client(const std::string& trusted_file) {
  if (!trusted_file.empty()) context_ = context_for(trusted_file);
}

detail::any_stream secure_client::connect(net::tcp_stream carrier, const std::string& host) {
  if (!context_.has_value()) context_ = context_for({});
  return detail::any_stream(tls::stream::connect(std::move(carrier), *context_, host));
}

#else

secure_client::secure_client(const std::string&) {}

detail::any_stream secure_client::connect(net::tcp_stream, const std::string&) {
  throw std::logic_error("https: this motet-http was built without motet-tls");
}

#endif

}}}  // namespace motet::MOTET_ABI::http
