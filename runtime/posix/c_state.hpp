// SPDX-License-Identifier: MIT
// What C libraries keep for each thread, and a fiber keeps over a wait in a call: h_errno, and
// OpenSSL's error queue.
// Source: ERR_get_error(3).
#pragma once

#include <netdb.h>

#include <motet/detail/base/abi.hpp>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The errors of a fiber that waits are in its frame, so that no other fiber of the thread sees or
/// clears them. Does nothing in a program without OpenSSL 3.
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

/// In the frame of a call, around a wait.
class c_state {
 public:
  c_state() noexcept : lookup_error_(h_errno) {}
  c_state(const c_state&) = delete;
  c_state& operator=(const c_state&) = delete;
  ~c_state() { h_errno = lookup_error_; }

 private:
  const openssl_errors errors_;
  const int lookup_error_;
};

}}}  // namespace motet::MOTET_ABI::detail
