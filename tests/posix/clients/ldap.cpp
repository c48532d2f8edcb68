// SPDX-License-Identifier: MIT
// libldap.
#include <ldap.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

/// An entry that the server takes a second to find.
constexpr const char* entry = "cn=slow,ou=answers,dc=tests";

class ldap_client final : public polled_client {
 public:
  explicit ldap_client(const std::string& server) : server_(server) {}
  ~ldap_client() override {
    if (connection_ != nullptr) ::ldap_unbind_ext(connection_, nullptr, nullptr);
  }
  void connect() override {
    const int version = LDAP_VERSION3;
    berval nobody{0, nullptr};
    ::ldap_initialize(&connection_, server_.c_str());
    ::ldap_set_option(connection_, LDAP_OPT_PROTOCOL_VERSION, &version);
    const int error = ::ldap_sasl_bind_s(connection_, nullptr, LDAP_SASL_SIMPLE, &nobody, nullptr,
                                         nullptr, nullptr);
    if (error != LDAP_SUCCESS) throw std::runtime_error(::ldap_err2string(error));
  }
  bool call() override {
    LDAPMessage* answer = nullptr;
    const int error = ::ldap_search_ext_s(connection_, entry, LDAP_SCOPE_BASE, nullptr, nullptr, 0,
                                          nullptr, nullptr, nullptr, 0, &answer);
    ::ldap_msgfree(answer);
    return error == LDAP_SUCCESS;
  }

  void begin() override {
    if (::ldap_search_ext(connection_, entry, LDAP_SCOPE_BASE, nullptr, nullptr, 0, nullptr,
                          nullptr, nullptr, 0, &search_) != LDAP_SUCCESS)
      throw std::runtime_error("ldap_search_ext");
  }
  int descriptor() override {
    int result = -1;
    ::ldap_get_option(connection_, LDAP_OPT_DESC, &result);
    return result;
  }
  std::optional<bool> proceed() override {
    timeval none{};
    LDAPMessage* answer = nullptr;
    const int type = ::ldap_result(connection_, search_, LDAP_MSG_ALL, &none, &answer);
    if (type == 0) return std::nullopt;
    int error = LDAP_OTHER;
    ::ldap_parse_result(connection_, answer, &error, nullptr, nullptr, nullptr, nullptr, 1);
    return error == LDAP_SUCCESS;
  }

 private:
  const std::string server_;
  LDAP* connection_ = nullptr;
  int search_ = 0;
};

const registered ldap("ldap", {[](const std::string& server) -> std::unique_ptr<client> {
                                 return std::make_unique<ldap_client>(server);
                               },
                               &call_all_polled});

}}  // namespace clients
