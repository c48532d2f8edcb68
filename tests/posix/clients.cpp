// SPDX-License-Identifier: MIT
// Clients of databases and of a web server, written for threads: each makes one call that its
// server answers after a second. All run at the same time, as fibers of one thread, or on threads.
//
// usage: clients redis|postgres|https SERVER COUNT fibers|threads|offload [LIMIT-IN-MS]
//
// Prints how many calls succeeded, how many the limit ended, how long all took, how late the latest
// end was, how many descriptors are left over, and the memory and processor time for each.
#include <curl/curl.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using motet::clock;

/// A connection, and its call.
class client {
 public:
  client() = default;
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  virtual ~client() = default;
  /// Throws: std::runtime_error.
  virtual void connect() = 0;
  /// Returns: whether the call succeeded.
  virtual bool call() = 0;
};

class redis_client final : public client {
 public:
  explicit redis_client(const std::string& server)
      : port_(std::stoi(server.substr(server.rfind(':') + 1))) {}
  ~redis_client() override { ::redisFree(context_); }
  void connect() override {
    context_ = ::redisConnect("127.0.0.1", port_);
    if (context_ == nullptr || context_->err != 0) throw std::runtime_error("redisConnect");
  }
  bool call() override {
    const std::string key = std::to_string(context_->fd);
    void* const reply = ::redisCommand(context_, "BLPOP %s 1", key.c_str());
    const bool is_nil =
        reply != nullptr && static_cast<redisReply*>(reply)->type == REDIS_REPLY_NIL;
    if (reply != nullptr) ::freeReplyObject(reply);
    return is_nil;
  }

 private:
  const int port_;
  redisContext* context_ = nullptr;
};

class postgres_client final : public client {
 public:
  explicit postgres_client(const std::string& server) : server_(server) {}
  ~postgres_client() override { ::PQfinish(connection_); }
  void connect() override {
    connection_ = ::PQconnectdb(server_.c_str());
    if (::PQstatus(connection_) != CONNECTION_OK)
      throw std::runtime_error(::PQerrorMessage(connection_));
  }
  bool call() override {
    PGresult* const result = ::PQexec(connection_, "SELECT pg_sleep(1)");
    const bool is_done = ::PQresultStatus(result) == PGRES_TUPLES_OK;
    ::PQclear(result);
    return is_done;
  }

 private:
  const std::string server_;
  PGconn* connection_ = nullptr;
};

/// Its connection is made by a first request, to which the server answers at once.
class https_client final : public client {
 public:
  explicit https_client(const std::string& server) : server_(server), request_(::curl_easy_init()) {
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYPEER, 0L);
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYHOST, 0L);
    ::curl_easy_setopt(request_, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(request_, CURLOPT_WRITEFUNCTION, &ignore);
  }
  ~https_client() override { ::curl_easy_cleanup(request_); }
  void connect() override {
    if (!get("/quick")) throw std::runtime_error("curl_easy_perform");
  }
  bool call() override { return get("/slow"); }

 private:
  static std::size_t ignore(char*, std::size_t size, std::size_t count, void*) {
    return size * count;
  }
  bool get(const char* path) {
    const std::string url = server_ + path;
    long status = 0;
    ::curl_easy_setopt(request_, CURLOPT_URL, url.c_str());
    const CURLcode code = ::curl_easy_perform(request_);
    ::curl_easy_getinfo(request_, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_OK && status == 200;
  }

  const std::string server_;
  CURL* const request_;
};

std::unique_ptr<client> make(std::string_view kind, const std::string& server) {
  if (kind == "redis") return std::make_unique<redis_client>(server);
  if (kind == "postgres") return std::make_unique<postgres_client>(server);
  if (kind == "https") return std::make_unique<https_client>(server);
  throw std::invalid_argument("clients: no such kind");
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

long resident_kilobytes() {
  long size = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

double processor_milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

using job = std::function<void()>;

void run_all(std::string_view how, const std::vector<job>& jobs) {
  if (how == "threads") {
    std::vector<std::thread> threads;
    threads.reserve(jobs.size());
    for (const job& each : jobs) threads.emplace_back(each);
    for (std::thread& thread : threads) thread.join();
    return;
  }
  motet::group fibers;
  for (const job& each : jobs) {
    fibers.spin([&each, offloads = how == "offload"] {
      if (offloads) {
        motet::offload(each);
      } else {
        each();
      }
    });
  }
  fibers.await_all();
}

struct outcome {
  std::atomic<std::size_t> successes{0};
  std::size_t ended = 0;  // by the limit, which only fibers have
  clock::duration latest{};
};

/// Notes how a call ended, which the limit may have done.
void call(client& one, std::optional<clock::duration> limit, outcome& all) {
  if (!limit.has_value()) {
    if (one.call()) ++all.successes;
    return;
  }
  const auto start = clock::now();
  try {
    if (motet::with_timeout(*limit, [&] { return one.call(); })) ++all.successes;
  } catch (const motet::timed_out&) {
    ++all.ended;
    all.latest = std::max(all.latest, clock::now() - start - *limit);
  }
}

int run_clients(std::string_view kind, const std::string& server, std::size_t count,
                std::string_view how, std::optional<clock::duration> limit) {
  const std::ptrdiff_t descriptors = open_descriptors();
  std::vector<std::unique_ptr<client>> clients;
  std::vector<job> connects;
  std::vector<job> calls;
  outcome all;
  for (std::size_t i = 0; i < count; ++i) {
    client& one = *clients.emplace_back(make(kind, server));
    connects.emplace_back([&one] { one.connect(); });
    calls.emplace_back([&one, &all, limit] { call(one, limit, all); });
  }
  run_all(how == "threads" ? "fibers" : how, connects);
  const long memory = resident_kilobytes();
  const double processor = processor_milliseconds();
  const auto start = clock::now();
  run_all(how, calls);
  const auto elapsed = clock::now() - start;
  const auto per_call = static_cast<double>(count);
  const double used = processor_milliseconds() - processor;
  const long more_memory = resident_kilobytes() - memory;
  clients.clear();
  const auto milliseconds = [](clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
  };
  std::printf(
      "successes=%zu ended=%zu elapsed=%.1f latest=%.1f descriptors=%td memory=%.1f "
      "processor=%.3f\n",
      all.successes.load(), all.ended, milliseconds(elapsed), milliseconds(all.latest),
      open_descriptors() - descriptors, static_cast<double>(more_memory) / per_call,
      used / per_call);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: clients KIND SERVER COUNT fibers|threads|offload [LIMIT-IN-MS]\n", stderr);
    return 2;
  }
  const std::string server = argv[2];
  const auto count = static_cast<std::size_t>(std::atoi(argv[3]));
  std::optional<clock::duration> limit;
  if (argc > 5) limit = std::chrono::milliseconds(std::atoi(argv[5]));
  ::curl_global_init(CURL_GLOBAL_ALL);
  motet::options config;
  config.offload_limit = count;
  const int status =
      motet::run(config, [&] { return run_clients(argv[1], server, count, argv[4], limit); });
  ::curl_global_cleanup();
  return status;
}
