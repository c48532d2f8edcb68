// SPDX-License-Identifier: MIT
// What connections have in common, for OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <motet/detail/base/abi.hpp>
#include <motet/tls.hpp>
#include <string>
#include <vector>

#include "tls/sessions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

struct context_free {
  void operator()(SSL_CTX* pointer) const noexcept { SSL_CTX_free(pointer); }
};
using context = std::unique_ptr<SSL_CTX, context_free>;

class client_context::state {
 public:
  /// Throws: std::system_error; std::invalid_argument.
  explicit state(const client_options& options);
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  SSL_CTX* get() const noexcept { return context_.get(); }
  bool verifies() const noexcept { return verifies_; }
  sessions session_cache;
  /// `host` outlives the connection.
  static void store_sessions_as(SSL* connection, const std::string& host) noexcept;

 private:
  static int store_session(SSL* connection, SSL_SESSION* new_session) noexcept;

  const bool verifies_;
  context context_;
};

class server_context::state {
 public:
  /// Throws: as for clients.
  explicit state(const server_options& options);
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  SSL_CTX* get() const noexcept { return by_certificate_.front().get(); }

 private:
  context with(const certificate& identity, const server_options& options);
  static int choose_certificate(SSL* connection, int* alert, void* self) noexcept;
  static int choose_protocol(SSL* connection, const unsigned char** choice,
                             unsigned char* chosen_length, const unsigned char* offer,
                             unsigned int offered_length, void* self) noexcept;

  std::vector<unsigned char> protocols_;
  std::vector<context> by_certificate_;
};

}}}  // namespace motet::MOTET_ABI::tls
