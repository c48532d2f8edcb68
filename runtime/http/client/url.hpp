// SPDX-License-Identifier: MIT
// Addresses of resources. Source: RFC 3986; RFC 9110, 4.2.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct url {
  bool is_secure = false;  // https
  std::string host;        // without the brackets of an IPv6 address
  std::uint16_t port = 0;
  std::string target;    // what a server is asked for
  std::string fragment;  // with the number sign; never sent to a server

  /// Throws: std::invalid_argument for what is no address of http or https, or has a user's name.
  static url parse(std::string_view text);
  /// Returns: what `reference`, in an answer to a request for this, stands for. Without a fragment
  ///          of its own it inherits this one's. Source: RFC 9110, 10.2.2.
  url resolve(std::string_view reference) const;

  /// Returns: "http://host:port", which connections have in common.
  std::string origin() const;
  /// Returns: the value of the Host field for requests to it.
  std::string host_field() const;
  std::string text() const;
};

}}}  // namespace motet::MOTET_ABI::http
