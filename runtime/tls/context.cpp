// SPDX-License-Identifier: MIT
// See tls/context.hpp. Source: ssl(7).
#include "tls/context.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "tls/failure.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

/// Nobody is asked for the password of a key: that would block the thread.
int no_password(char*, int, int, void*) noexcept {
  return -1;
}

context new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  context made(SSL_CTX_new(method));
  if (made == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION);
  // A connection that waits keeps no buffers.
  SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(made.get(), no_password);
  return made;
}

void use_certificate(const context& by, const certificate& own) {
  if (SSL_CTX_use_certificate_chain_file(by.get(), own.chain_file.c_str()) != 1) {
    throw_failure("certificate " + own.chain_file);
  }
  if (SSL_CTX_use_PrivateKey_file(by.get(), own.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw_failure("key " + own.key_file);
  }
}

void trust(const context& by, const std::string& file) {
  if (SSL_CTX_load_verify_file(by.get(), file.c_str()) != 1) {
    throw_failure("trusted certificates " + file);
  }
}

/// Returns: the names as they are sent, each behind its length. Source: RFC 7301, 3.1.
std::vector<unsigned char> as_sent(const std::vector<std::string>& protocols) {
  std::vector<unsigned char> list;
  for (const std::string& each : protocols) {
    if (each.empty() || each.size() > 255) {
      throw std::invalid_argument("tls: an ALPN protocol name must have 1 to 255 bytes, not " +
                                  std::to_string(each.size()));
    }
    list.push_back(static_cast<unsigned char>(each.size()));
    list.insert(list.end(), each.begin(), each.end());
  }
  return list;
}

}  // namespace

client_context::client_context(const client_options& how) : state_(std::make_shared<state>(how)) {}

client_context::state::state(const client_options& how)
    : verifies_(how.verify), context_(new_context(TLS_client_method())) {
  SSL_CTX* by = context_.get();
  if (how.verify) SSL_CTX_set_verify(by, SSL_VERIFY_PEER, nullptr);
  if (!how.trusted_file.empty()) {
    trust(context_, how.trusted_file);
  } else if (SSL_CTX_set_default_verify_paths(by) != 1) {
    throw_failure("the system's trusted certificates");
  }
  if (!how.own.chain_file.empty()) use_certificate(context_, how.own);
  const std::vector<unsigned char> protocols = as_sent(how.protocols);
  if (SSL_CTX_set_alpn_protos(by, protocols.data(), static_cast<unsigned>(protocols.size())) != 0) {
    throw std::bad_alloc();
  }
  SSL_CTX_set_session_cache_mode(by, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(by, keep_session);
  SSL_CTX_set_ex_data(by, 0, this);
}

void client_context::state::keep_sessions_as(SSL* connection, const std::string& host) noexcept {
  SSL_set_ex_data(connection, 0, const_cast<std::string*>(&host));
}

/// Returns: 1, which takes ownership of the session.
int client_context::state::keep_session(SSL* connection, SSL_SESSION* offered) noexcept {
  auto* self = static_cast<state*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), 0));
  const auto* host = static_cast<const std::string*>(SSL_get_ex_data(connection, 0));
  session taken(offered);
  if (host != nullptr) self->offered.put(*host, std::move(taken));
  return 1;
}

server_context::server_context(const server_options& how) : state_(std::make_shared<state>(how)) {}

server_context::state::state(const server_options& how) : protocols_(as_sent(how.protocols)) {
  if (how.certificates.empty())
    throw std::invalid_argument("tls::server_context: no certificate was given");
  for (const certificate& each : how.certificates) by_certificate_.push_back(with(each, how));
  if (by_certificate_.size() == 1) return;
  SSL_CTX_callback_ctrl(get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(choose_certificate));
  SSL_CTX_ctrl(get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, this);
}

context server_context::state::with(const certificate& own, const server_options& how) {
  context made = new_context(TLS_server_method());
  use_certificate(made, own);
  if (!how.client_trusted_file.empty()) {
    trust(made, how.client_trusted_file);
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // The names of these help a client to choose its own.
    SSL_CTX_set_client_CA_list(made.get(),
                               SSL_load_client_CA_file(how.client_trusted_file.c_str()));
    ERR_clear_error();  // where the file ends
  }
  if (!protocols_.empty()) SSL_CTX_set_alpn_select_cb(made.get(), choose_protocol, this);
  SSL_CTX_set_dh_auto(made.get(), 1);
  // Clients keep their sessions, in tickets; a server that verifies clients names the context.
  constexpr unsigned char name[] = "motet";
  SSL_CTX_set_session_id_context(made.get(), name, sizeof name - 1);
  SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
  return made;
}

int server_context::state::choose_certificate(SSL* connection, int*, void* self) noexcept {
  const char* asked = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
  if (asked == nullptr) return SSL_TLSEXT_ERR_NOACK;
  const auto& all = static_cast<state*>(self)->by_certificate_;
  ERR_set_mark();
  const auto found = std::find_if(all.begin(), all.end(), [&](const context& each) {
    return X509_check_host(SSL_CTX_get0_certificate(each.get()), asked, 0, 0, nullptr) == 1;
  });
  ERR_pop_to_mark();  // a look that fails is no failure of the handshake
  if (found == all.end()) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_SSL_CTX(connection, found->get());
  return SSL_TLSEXT_ERR_OK;
}

int server_context::state::choose_protocol(SSL*, const unsigned char** chosen,
                                           unsigned char* chosen_length,
                                           const unsigned char* offered,
                                           unsigned int offered_length, void* self) noexcept {
  const std::vector<unsigned char>& own = static_cast<state*>(self)->protocols_;
  unsigned char* found = nullptr;
  const int outcome =
      SSL_select_next_proto(&found, chosen_length, own.data(), static_cast<unsigned>(own.size()),
                            offered, offered_length);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}}}  // namespace motet::MOTET_ABI::tls
