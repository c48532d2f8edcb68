// SPDX-License-Identifier: MIT
// libpq.
#include <libpq-fe.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

constexpr const char* query = "SELECT pg_sleep(1)";

class postgres_client final : public polled_client {
 public:
  explicit postgres_client(const std::string& server) : server_(server) {}
  ~postgres_client() override { ::PQfinish(connection_); }
  void connect() override {
    connection_ = ::PQconnectdb(server_.c_str());
    if (::PQstatus(connection_) != CONNECTION_OK)
      throw std::runtime_error(::PQerrorMessage(connection_));
  }
  bool call() override { return is_done(::PQexec(connection_, query)); }

  void begin() override {
    ::PQsetnonblocking(connection_, 1);
    if (::PQsendQuery(connection_, query) != 1)
      throw std::runtime_error(::PQerrorMessage(connection_));
    while (::PQflush(connection_) == 1) continue;
  }
  int descriptor() override { return ::PQsocket(connection_); }
  std::optional<bool> proceed() override {
    if (::PQconsumeInput(connection_) != 1) return false;
    if (::PQisBusy(connection_) == 1) return std::nullopt;
    const bool result = is_done(::PQgetResult(connection_));
    return result && ::PQgetResult(connection_) == nullptr;
  }

 private:
  static bool is_done(PGresult* answer) {
    const bool result = ::PQresultStatus(answer) == PGRES_TUPLES_OK;
    ::PQclear(answer);
    return result;
  }

  const std::string server_;
  PGconn* connection_ = nullptr;
};

const registered postgres("postgres", {[](const std::string& server) -> std::unique_ptr<client> {
                                         return std::make_unique<postgres_client>(server);
                                       },
                                       &call_all_polled});

}}  // namespace clients
