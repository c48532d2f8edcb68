// SPDX-License-Identifier: MIT
// libmariadb.
#include <mysql.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

constexpr std::string_view query = "SELECT SLEEP(1)";

class mariadb_client final : public polled_client {
 public:
  explicit mariadb_client(const std::string& server) : server_(server) {
    ::mysql_init(&connection_);
  }
  ~mariadb_client() override { ::mysql_close(&connection_); }
  void connect() override {
    if (::mysql_real_connect(&connection_, nullptr, "root", "", nullptr, 0, server_.c_str(), 0) ==
        nullptr)
      throw std::runtime_error(::mysql_error(&connection_));
  }
  bool call() override {
    return ::mysql_real_query(&connection_, query.data(), query.size()) == 0 && slept();
  }

  void begin() override {
    ::mysql_options(&connection_, MYSQL_OPT_NONBLOCK, nullptr);
    if (::mysql_real_query_start(&error_, &connection_, query.data(), query.size()) == 0)
      throw std::runtime_error("mysql_real_query_start");
  }
  int descriptor() override { return ::mysql_get_socket(&connection_); }
  std::optional<bool> proceed() override {
    if (::mysql_real_query_cont(&error_, &connection_, MYSQL_WAIT_READ) != 0) return std::nullopt;
    return error_ == 0 && slept();
  }

 private:
  /// The answer is 1 if something interrupted the sleep.
  bool slept() {
    MYSQL_RES* const answer = ::mysql_store_result(&connection_);
    if (answer == nullptr) return false;
    const MYSQL_ROW row = ::mysql_fetch_row(answer);
    const bool result = row != nullptr && std::string_view(row[0]) == "0";
    ::mysql_free_result(answer);
    return result;
  }

  const std::string server_;
  MYSQL connection_{};
  int error_ = 0;
};

const registered mariadb("mariadb", {[](const std::string& server) -> std::unique_ptr<client> {
                                       return std::make_unique<mariadb_client>(server);
                                     },
                                     &call_all_polled});

}}  // namespace clients
