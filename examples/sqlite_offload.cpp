// SPDX-License-Identifier: MIT
// A database that blocks, used by many fibers of one thread: each borrows one of four connections
// and has its statements run on another thread, while a fiber that ticks every 5 ms shows that its
// thread never stands still. At the end the rows are counted. Run: sqlite_offload [DIRECTORY]
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// One connection; moved from fiber to fiber, used by one at a time.
class database {
 public:
  explicit database(const std::string& file) {
    sqlite3* handle = nullptr;
    const int result = sqlite3_open(file.c_str(), &handle);
    handle_.reset(handle);
    check(result);
    sqlite3_busy_timeout(handle, 5'000);
  }

  void run(const std::string& statements) {
    check(sqlite3_exec(handle_.get(), statements.c_str(), nullptr, nullptr, nullptr));
  }

  /// Returns: the one number that `query` is answered with.
  long long number(const std::string& query) {
    long long result = -1;
    const auto store = [](void* target, int, char** columns, char**) {
      *static_cast<long long*>(target) = std::stoll(columns[0]);
      return 0;
    };
    check(sqlite3_exec(handle_.get(), query.c_str(), store, &result, nullptr));
    return result;
  }

 private:
  struct closer {
    void operator()(sqlite3* open) const noexcept { sqlite3_close(open); }
  };

  void check(int result) const {
    if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(handle_.get()));
  }

  std::unique_ptr<sqlite3, closer> handle_;
};

/// A directory of its own, removed at the end.
class workplace {
 public:
  explicit workplace(const std::filesystem::path& parent) {
    std::string name = parent / "motet-sqlite-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no place for a database");
    path_ = name;
  }
  workplace(const workplace&) = delete;
  workplace& operator=(const workplace&) = delete;
  ~workplace() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string file() const { return path_ / "orders.db"; }

 private:
  std::filesystem::path path_;
};

constexpr int fibers = 50;
constexpr std::size_t connections = 4;
constexpr auto duration = 700ms;

using database_pool = motet::resource_pool<database>;

/// Returns: how many orders it has inserted until `end`.
long long place_orders(database_pool& pool, int customer, steady_clock::time_point end) {
  const std::string insert =
      "INSERT INTO orders VALUES (" + std::to_string(customer) + ", abs(random()) % 1000)";
  for (long long inserted = 0;; ++inserted) {
    const auto connection = pool.acquire();
    if (steady_clock::now() >= end) return inserted;
    motet::offload([&] { connection->run(insert); });
  }
}

/// Ticks until it is cancelled, and keeps the most that a tick was late by.
void tick(std::chrono::duration<double, std::milli>& longest_stall) {
  auto last = steady_clock::now();
  motet::every(5ms, [&] {
    const auto time = steady_clock::now();
    longest_stall =
        std::max<std::chrono::duration<double, std::milli>>(longest_stall, time - last - 5ms);
    last = time;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const workplace place(argc > 1 ? std::filesystem::path(argv[1])
                                 : std::filesystem::temp_directory_path());
  const auto open = [&] { return database(place.file()); };
  database_pool pool(connections, [&] { return motet::offload(open); });
  motet::offload(
      [&] { open().run("PRAGMA journal_mode = WAL; CREATE TABLE orders (customer, amount)"); });

  std::chrono::duration<double, std::milli> longest_stall{0};
  long long inserted = 0;
  const auto start = steady_clock::now();
  motet::group background;
  motet::group customers;
  auto ticker = background.spin([&] { tick(longest_stall); });
  for (int customer = 0; customer < fibers; ++customer) {
    customers.spin([&, customer] { inserted += place_orders(pool, customer, start + duration); });
  }
  customers.await_all();
  const std::chrono::duration<double> elapsed = steady_clock::now() - start;
  ticker.cancel();
  background.await_all();

  const auto connection = pool.acquire();
  const auto order_count =
      motet::offload([&] { return connection->number("SELECT count(*) FROM orders"); });
  std::printf("%lld orders of %d fibers through %zu connections in %.2f s: %.0f a second\n",
              order_count, fibers, connections, elapsed.count(),
              static_cast<double>(order_count) / elapsed.count());
  std::printf("the longest stall of the thread: %.1f ms\n", longest_stall.count());
  if (order_count == inserted && order_count > 0) return 0;
  std::printf("but %lld were inserted\n", inserted);
  return 1;
}
