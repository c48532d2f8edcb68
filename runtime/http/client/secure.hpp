// SPDX-License-Identifier: MIT
// https, where motet-tls is.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/net/tcp_stream.hpp>
#include <optional>
#include <string>
#ifdef MOTET_HTTP_TLS
#include <motet/tls.hpp>
#endif

namespace motet { inline namespace MOTET_ABI { namespace http {

class secure_client {
 public:
  /// Throws: std::system_error if the file cannot be used.
  explicit secure_client(const std::string& trusted_file);

  /// Throws: as tls::stream::connect(); std::logic_error if there is no motet-tls.
  detail::any_stream connect(net::tcp_stream carrier, const std::string& host);

 private:
#ifdef MOTET_HTTP_TLS
  std::optional<tls::client_context> context_;  // what the system trusts is read when it is needed
#endif
};

}}}  // namespace motet::MOTET_ABI::http
