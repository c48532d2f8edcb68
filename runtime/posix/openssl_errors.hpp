// SPDX-License-Identifier: MIT
// OpenSSL's error queue belongs to the thread. While a fiber waits in a call, its errors are in the
// fiber's frame, so that no other fiber of the thread sees or clears them.
// Source: ERR_get_error(3).
#pragma once

#include <motet/detail/base/abi.hpp>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// In the frame of a call, around a wait. Does nothing in a program without OpenSSL 3.
class openssl_errors {
 public:
  openssl_errors() noexcept;
  openssl_errors(const openssl_errors&) = delete;
  openssl_errors& operator=(const openssl_errors&) = delete;
  ~openssl_errors();

 private:
  struct error {
    unsigned long code;
    std::string file;
    int line;
    std::string function;
    std::string data;
  };
  std::vector<error> errors_;
};

}}}  // namespace motet::MOTET_ABI::detail
