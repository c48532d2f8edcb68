// SPDX-License-Identifier: MIT
// PostgreSQL by libpq: fifty fibers on ten connections of one thread, none of which blocks it; and
// a query whose time is up is cancelled at the server, too.
//
// usage: pg_queries CONNECTION-STRING
#include <libpq-fe.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct free_by_libpq {
  void operator()(PGconn* object) const noexcept { PQfinish(object); }
  void operator()(PGresult* object) const noexcept { PQclear(object); }
  void operator()(PGcancel* object) const noexcept { PQfreeCancel(object); }
};
using result = std::unique_ptr<PGresult, free_by_libpq>;

/// libpq says when it would block, and which way; the fiber waits then.
class connection {
 public:
  explicit connection(const std::string& parameters) : handle_(PQconnectStart(parameters.c_str())) {
    if (handle_ == nullptr) throw std::bad_alloc();
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQconnectPoll(get())) {
      if (next == PGRES_POLLING_FAILED) fail();
      io::wait_fd(PQsocket(get()), next == PGRES_POLLING_WRITING ? POLLOUT : POLLIN);
    }
    PQsetnonblocking(get(), 1);
  }

  /// Returns: the first value of the first row.
  /// Throws: std::runtime_error. When it is interrupted, so is the query, and the connection can be
  ///         used again.
  std::string value(const std::string& query) {
    if (PQsendQuery(get(), query.c_str()) != 1) fail();
    try {
      return take();
    } catch (...) {
      shield([&] { call_off(); });
      throw;
    }
  }

 private:
  std::string take() {
    while (const int rest = PQflush(get())) {
      if (rest < 0) fail();
      io::wait_fd(PQsocket(get()), POLLOUT | POLLIN);
      if (PQconsumeInput(get()) != 1) fail();
    }
    std::string answer;
    std::string failure;
    while (const result part = next()) {
      const auto status = PQresultStatus(part.get());
      if (status == PGRES_TUPLES_OK && PQntuples(part.get()) > 0) {
        answer = PQgetvalue(part.get(), 0, 0);
      } else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        failure = PQresultErrorMessage(part.get());
      }
    }
    if (!failure.empty()) throw std::runtime_error(failure);
    return answer;
  }

  /// Returns: the next part of an answer; null behind the last.
  result next() {
    while (PQisBusy(get()) == 1) {
      io::wait_fd(PQsocket(get()), POLLIN);
      if (PQconsumeInput(get()) != 1) fail();
    }
    return result(PQgetResult(get()));
  }

  /// PQcancel() connects to the server and blocks: another thread calls it. What still comes is
  /// dropped.
  void call_off() {
    const std::unique_ptr<PGcancel, free_by_libpq> cancel(PQgetCancel(get()));
    offload([&] {
      std::array<char, 256> message;
      if (cancel != nullptr)
        PQcancel(cancel.get(), message.data(), static_cast<int>(message.size()));
    });
    while (next() != nullptr) continue;
  }

  PGconn* get() const noexcept { return handle_.get(); }
  [[noreturn]] void fail() const { throw std::runtime_error(PQerrorMessage(get())); }

  std::unique_ptr<PGconn, free_by_libpq> handle_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: pg_queries CONNECTION-STRING\n";
    return 2;
  }
  try {
    resource_pool<connection> pool(10, [&] { return connection(words[1]); });
    const auto start = clock::now();
    long long sum = 0;
    group queries;
    for (int index = 1; index <= 50; ++index) {
      queries.spin([&, index] {
        const auto query = "select " + std::to_string(index) + " from pg_sleep(0.05)";
        sum += std::stoll(pool.acquire()->value(query));
      });
    }
    queries.await_all();
    const auto duration =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
    std::cout << "50 queries of 50 ms on 10 connections: " << duration.count() << " ms, sum " << sum
              << '\n';

    const bool in_time =
        move_on_after(100ms, [&] { pool.acquire()->value("select pg_sleep(60)"); });
    const std::string query_count = pool.acquire()->value(
        "select count(*) from pg_stat_activity where state = 'active' and query like '%sleep(60)'"
        " and pid != pg_backend_pid()");
    std::cout << (in_time ? "not cancelled" : "cancelled") << ", and the server still runs "
              << query_count << '\n';
  } catch (const std::exception& error) {
    std::cerr << "pg_queries: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
