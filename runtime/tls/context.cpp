// SPDX-License-Identifier: MIT
// See tls/context.hpp. Source: ssl(7).
#include "tls/context.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "tls/failure.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

/// Nobody is asked for the password of a key: that would block the thread.
int no_password(char*, int, int, void*) noexcept {
  return -1;
}

context new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  context result(SSL_CTX_new(method));
  if (result == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(result.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(result.get(), SSL_OP_NO_RENEGOTIATION);
  // A connection that waits keeps no buffers.
  SSL_CTX_set_mode(result.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(result.get(), no_password);
  return result;
}

void use_certificate(const context& ssl_context, const certificate& identity) {
  if (SSL_CTX_use_certificate_chain_file(ssl_context.get(), identity.chain_file.c_str()) != 1) {
    throw_failure("certificate " + identity.chain_file);
  }
  if (SSL_CTX_use_PrivateKey_file(ssl_context.get(), identity.key_file.c_str(), SSL_FILETYPE_PEM) !=
      1) {
    throw_failure("key " + identity.key_file);
  }
}

void trust(const context& ssl_context, const std::string& file) {
  if (SSL_CTX_load_verify_file(ssl_context.get(), file.c_str()) != 1) {
    throw_failure("trusted certificates " + file);
  }
}

/// Returns: the names as they are sent, each behind its length. Source: RFC 7301, 3.1.
std::vector<unsigned char> as_sent(const std::vector<std::string>& protocols) {
  std::vector<unsigned char> list;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) {
      throw std::invalid_argument("tls: an ALPN protocol name must have 1 to 255 bytes, not " +
                                  std::to_string(protocol.size()));
    }
    list.push_back(static_cast<unsigned char>(protocol.size()));
    list.insert(list.end(), protocol.begin(), protocol.end());
  }
  return list;
}

}  // namespace

client_context::client_context(const client_options& options)
    : state_(std::make_shared<state>(options)) {}

client_context::state::state(const client_options& options)
    : verifies_(options.verify), context_(new_context(TLS_client_method())) {
  SSL_CTX* ssl_context = context_.get();
  if (options.verify) SSL_CTX_set_verify(ssl_context, SSL_VERIFY_PEER, nullptr);
  if (!options.trusted_file.empty()) {
    trust(context_, options.trusted_file);
  } else if (SSL_CTX_set_default_verify_paths(ssl_context) != 1) {
    throw_failure("the system's trusted certificates");
  }
  if (!options.own.chain_file.empty()) use_certificate(context_, options.own);
  const std::vector<unsigned char> protocols = as_sent(options.protocols);
  if (SSL_CTX_set_alpn_protos(ssl_context, protocols.data(),
                              static_cast<unsigned>(protocols.size())) != 0) {
    throw std::bad_alloc();
  }
  SSL_CTX_set_session_cache_mode(ssl_context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(ssl_context, store_session);
  SSL_CTX_set_ex_data(ssl_context, 0, this);
}

void client_context::state::store_sessions_as(SSL* connection, const std::string& host) noexcept {
  SSL_set_ex_data(connection, 0, const_cast<std::string*>(&host));
}

/// Returns: 1, which takes ownership of the session.
int client_context::state::store_session(SSL* connection, SSL_SESSION* new_session) noexcept {
  auto* self = static_cast<state*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), 0));
  const auto* host = static_cast<const std::string*>(SSL_get_ex_data(connection, 0));
  session owned_session(new_session);
  if (host != nullptr) self->session_cache.put(*host, std::move(owned_session));
  return 1;
}

server_context::server_context(const server_options& options)
    : state_(std::make_shared<state>(options)) {}

server_context::state::state(const server_options& options)
    : protocols_(as_sent(options.protocols)) {
  if (options.certificates.empty())
    throw std::invalid_argument("tls::server_context: no certificate was given");
  for (const certificate& identity : options.certificates)
    by_certificate_.push_back(with(identity, options));
  if (by_certificate_.size() == 1) return;
  SSL_CTX_callback_ctrl(get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(choose_certificate));
  SSL_CTX_ctrl(get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, this);
}

context server_context::state::with(const certificate& identity, const server_options& options) {
  context result = new_context(TLS_server_method());
  use_certificate(result, identity);
  if (!options.client_trusted_file.empty()) {
    trust(result, options.client_trusted_file);
    SSL_CTX_set_verify(result.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // The names of these help a client to choose its own.
    SSL_CTX_set_client_CA_list(result.get(),
                               SSL_load_client_CA_file(options.client_trusted_file.c_str()));
    ERR_clear_error();  // where the file ends
  }
  if (!protocols_.empty()) SSL_CTX_set_alpn_select_cb(result.get(), choose_protocol, this);
  SSL_CTX_set_dh_auto(result.get(), 1);
  // Clients keep their sessions, in tickets; a server that verifies clients names the context.
  constexpr unsigned char name[] = "motet";
  SSL_CTX_set_session_id_context(result.get(), name, sizeof name - 1);
  SSL_CTX_set_session_cache_mode(result.get(), SSL_SESS_CACHE_OFF);
  return result;
}

int server_context::state::choose_certificate(SSL* connection, int*, void* self) noexcept {
  const char* host_name = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
  if (host_name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  const auto& contexts = static_cast<state*>(self)->by_certificate_;
  ERR_set_mark();
  const auto match = std::find_if(contexts.begin(), contexts.end(), [&](const context& candidate) {
    return X509_check_host(SSL_CTX_get0_certificate(candidate.get()), host_name, 0, 0, nullptr) ==
           1;
  });
  ERR_pop_to_mark();  // a look that fails is no failure of the handshake
  if (match == contexts.end()) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_SSL_CTX(connection, match->get());
  return SSL_TLSEXT_ERR_OK;
}

int server_context::state::choose_protocol(SSL*, const unsigned char** choice,
                                           unsigned char* chosen_length, const unsigned char* offer,
                                           unsigned int offered_length, void* self) noexcept {
  const std::vector<unsigned char>& protocols = static_cast<state*>(self)->protocols_;
  unsigned char* result = nullptr;
  const int outcome =
      SSL_select_next_proto(&result, chosen_length, protocols.data(),
                            static_cast<unsigned>(protocols.size()), offer, offered_length);
  *choice = result;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}}}  // namespace motet::MOTET_ABI::tls
