// SPDX-License-Identifier: MIT
// See tls/failure.hpp, and motet/tls.hpp for the codes.
#include "tls/failure.hpp"

#include <openssl/err.h>

#include <cerrno>

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

class tls_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls"; }
  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::bad_certificate:
        return "the peer's certificate is not to be trusted";
      case errc::refused:
        return "the peer will not go on";
      case errc::protocol_error:
        return "the two ends cannot go on with TLS";
      case errc::truncated:
        return "the connection ended without a farewell";
    }
    return "unknown error";
  }
};

bool is_ssl_error(unsigned long error, int reason) noexcept {
  return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == reason;
}

/// Returns: the first queued error, which has caused the others; or the one
///          about a certificate, whose cause is known otherwise. Empties the
///          queue.
unsigned long take_error() noexcept {
  unsigned long result = ERR_get_error();
  for (unsigned long next = result; next != 0; next = ERR_get_error()) {
    if (is_ssl_error(next, SSL_R_CERTIFICATE_VERIFY_FAILED)) result = next;
  }
  return result;
}

const char* reason_of(unsigned long error) noexcept {
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

/// Alerts that the peer has sent come as reasons from this number on. Source: openssl/sslerr.h.
bool is_alert_of_peer(unsigned long error) noexcept {
  return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET;
}

}  // namespace

const std::error_category& category() noexcept {
  static const tls_category instance;
  return instance;
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), category()};
}

failure failure_of(SSL* connection) noexcept {
  const unsigned long error = take_error();
  failure result;
  const char* text = reason_of(error);
  if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) {
    result.code = std::make_error_code(std::errc::not_enough_memory);
  } else if (is_ssl_error(error, SSL_R_CERTIFICATE_VERIFY_FAILED)) {
    result.code = make_error_code(errc::bad_certificate);
    text = X509_verify_cert_error_string(SSL_get_verify_result(connection));
  } else {
    result.code = make_error_code(is_alert_of_peer(error) ? errc::refused : errc::protocol_error);
  }
  try {
    result.text = text;
  } catch (const std::bad_alloc&) {
  }
  return result;
}

void throw_failure(const std::string& action) {
  const unsigned long error = take_error();
  // A file that cannot be read is told by errno.
  if (ERR_SYSTEM_ERROR(error)) {
    throw std::system_error(ERR_GET_REASON(error), std::system_category(), action);
  }
  throw std::system_error(EINVAL, std::system_category(), action + ": " + reason_of(error));
}

}}}  // namespace motet::MOTET_ABI::tls
