// SPDX-License-Identifier: MIT
// A pool of connections to PostgreSQL, with libpq's blocking calls in fibers: prepared statements,
// transactions, time limits that cancel the query at the server, and reconnection. Linked with
// motet-posix; pg_queries.cpp uses libpq's non-blocking calls instead.
//
// usage: pg_pool CONNECTION-STRING
#include <libpq-fe.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <motet/motet.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct free_by_libpq {
  void operator()(PGconn* object) const noexcept { PQfinish(object); }
  void operator()(PGresult* object) const noexcept { PQclear(object); }
  void operator()(PGcancel* object) const noexcept { PQfreeCancel(object); }
};
using result = std::unique_ptr<PGresult, free_by_libpq>;

class connection {
 public:
  explicit connection(const std::string& parameters) : handle_(PQconnectdb(parameters.c_str())) {
    if (PQstatus(handle_.get()) == CONNECTION_OK) return;
    const std::string message = PQerrorMessage(handle_.get());
    motet::checkpoint();  // throws a pending interruption
    throw std::runtime_error(message);
  }
  /// Whether it can be lent again. A server that has something to say is about to hang up.
  bool is_usable() const noexcept {
    pollfd entry{PQsocket(handle_.get()), POLLIN, 0};
    return !is_abandoned_ && PQtransactionStatus(handle_.get()) == PQTRANS_IDLE &&
           poll(&entry, 1, 0) == 0;
  }
  result execute(const char* query) { return checked(PQexec(handle_.get(), query)); }
  /// Prepares the query when it is first executed on this connection.
  result execute(const std::string& query, const std::vector<const char*>& values) {
    if (!prepared_.contains(query))
      checked(PQprepare(handle_.get(), query.c_str(), query.c_str(), 0, nullptr));
    prepared_.insert(query);
    return checked(PQexecPrepared(handle_.get(), query.c_str(), static_cast<int>(values.size()),
                                  values.data(), nullptr, nullptr, 0));
  }
  template <typename F>
  void in_transaction(F f) {
    execute("BEGIN");
    try {
      f();
      execute("COMMIT");
    } catch (...) {
      motet::shield([&] {
        motet::move_on_after(std::chrono::seconds(1),
                             [&] { const result ignored(PQexec(handle_.get(), "ROLLBACK")); });
      });
      throw;
    }
  }

 private:
  /// A time limit ends the call, not the query: the server is asked to cancel that, and the
  /// connection, which does not know of it, is not used again.
  result checked(PGresult* outcome) {
    result owned(outcome);
    const ExecStatusType status = PQresultStatus(outcome);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return owned;
    const std::string message = PQerrorMessage(handle_.get());
    try {
      motet::checkpoint();
    } catch (...) {
      is_abandoned_ = true;
      const std::unique_ptr<PGcancel, free_by_libpq> cancel(PQgetCancel(handle_.get()));
      std::array<char, 256> error{};
      motet::shield([&] { PQcancel(cancel.get(), error.data(), static_cast<int>(error.size())); });
      throw;
    }
    throw std::runtime_error(message);
  }

  std::unique_ptr<PGconn, free_by_libpq> handle_;
  std::set<std::string> prepared_;
  bool is_abandoned_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 2) return std::cerr << "usage: pg_pool CONNECTION-STRING\n", 2;
  motet::run([&] {
    motet::resource_pool<connection> pool(
        5, [&] { return connection(argv[1]); }, [](connection& idle) { return idle.is_usable(); });
    const auto five_at_once = [&](int count, const char* query) {
      motet::group queries;
      for (int i = 0; i < count; ++i) queries.spin([&] { pool.acquire()->execute(query); });
      queries.await_all();
    };
    const auto count = [&](const std::string& query, const char* value) {
      const result rows = pool.acquire()->execute("SELECT count(*) FROM " + query, {value});
      return std::string(PQgetvalue(rows.get(), 0, 0));
    };
    const auto start = motet::clock::now();
    five_at_once(20, "SELECT pg_sleep(0.1)");
    std::cout << "20 queries of 0.1 s: " << (motet::clock::now() - start) / 1ms << " ms\n";
    try {
      auto leased = pool.acquire();
      leased->in_transaction([&] {
        leased->execute("CREATE TABLE kept (line text)");
        throw std::runtime_error("rolled back");
      });
    } catch (const std::runtime_error& error) {
      const std::string tables = count("pg_tables WHERE tablename = $1", "kept");
      std::cout << error.what() << ", tables: " << tables << '\n';
    }
    const char* const slow = "SELECT pg_sleep(60)";
    if (!motet::move_on_after(100ms, [&] { pool.acquire()->execute(slow); })) {
      motet::sleep_for(100ms);
      const std::string running =
          count("pg_stat_activity WHERE state = 'active' AND query = $1", slow);
      std::cout << "too slow, still running: " << running << '\n';
    }
    count(
        "(SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND backend_type = $1) AS ended",
        "client backend");
    motet::sleep_for(50ms);
    five_at_once(5, "SELECT pg_sleep(0.01)");
    std::cout << "connections, some of them new: " << pool.stats().idle << '\n';
  });
}
