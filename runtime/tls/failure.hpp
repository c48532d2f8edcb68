// SPDX-License-Identifier: MIT
// What OpenSSL says of a call that has failed. Its queue of errors is the thread's, so it is looked
// at before any other fiber runs, and left empty.
#pragma once

#include <openssl/ssl.h>

#include <motet/detail/base/abi.hpp>
#include <motet/tls.hpp>
#include <string>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace tls {

struct failure {
  std::error_code code;
  std::string text;  // empty if memory was short

  explicit operator bool() const noexcept { return static_cast<bool>(code); }
};

/// Returns: why the last call on `connection` failed, by the errors that it has queued.
failure failure_of(SSL* connection) noexcept;

/// Throws: what OpenSSL says of a call that concerns `action`, for example the name of a file.
[[noreturn]] void throw_failure(const std::string& action);

}}}  // namespace motet::MOTET_ABI::tls
