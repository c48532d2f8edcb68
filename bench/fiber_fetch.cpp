// SPDX-License-Identifier: MIT
// How many requests per second the fetcher of examples/cached_fetch completes, for
// bench/compare_fetch.py. It is also the server, in a process of its own.
//
// usage: fiber_fetch --serve --reply-ms N
//        fiber_fetch --load N --in-flight K --port P --cache-dir DIR
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../examples/cached_fetch/fetcher.hpp"
#include "../examples/cached_fetch/protocol.hpp"
#include "../examples/cached_fetch/server.hpp"
#include "../examples/cached_fetch/stores.hpp"
#include "../examples/cached_fetch/ui_loop.hpp"

namespace {

using namespace cached_fetch;
using steady = std::chrono::steady_clock;
using microseconds = std::chrono::duration<double, std::micro>;

struct options {
  bool is_server = false;
  std::chrono::milliseconds delay{0};
  int requests = 0;
  int in_flight = 0;
  std::uint16_t port = 0;
  std::string directory;
};

options parse(int count, char** words) {
  options result;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--serve") {
      result.is_server = true;
      continue;
    }
    if (++i == count) throw std::invalid_argument(std::string(word) + " needs a value");
    if (word == "--reply-ms") result.delay = std::chrono::milliseconds(std::atoi(words[i]));
    if (word == "--load") result.requests = std::atoi(words[i]);
    if (word == "--in-flight") result.in_flight = std::atoi(words[i]);
    if (word == "--port") result.port = static_cast<std::uint16_t>(std::atoi(words[i]));
    if (word == "--cache-dir") result.directory = words[i];
  }
  const bool is_load =
      result.requests > 0 && result.in_flight > 0 && result.port != 0 && !result.directory.empty();
  if (!result.is_server && !is_load) {
    throw std::invalid_argument(
        "usage: fiber_fetch --serve --reply-ms N\n"
        "       fiber_fetch --load N --in-flight K --port P --cache-dir DIR");
  }
  return result;
}

[[noreturn]] void serve(std::chrono::milliseconds delay) {
  const server origin(delay);
  std::printf("listening on %s\n", origin.where().to_string().c_str());
  std::fflush(stdout);
  for (;;) ::pause();
}

/// Counts the values that its user sees.
class counting_interface final : public user_interface {
 public:
  void post(std::function<void()> f) override { loop_.post(std::move(f)); }
  void show(const std::string&, const outcome& result) override {
    if (result.text.ends_with(" world!")) ++values_;
  }
  /// Closes the user interface.
  int values() {
    loop_.close();
    return values_;
  }

 private:
  int values_ = 0;
  ui_loop loop_;
};

struct measurement {
  std::vector<microseconds> latencies;
  std::chrono::duration<double> length;
};

/// Each of `in_flight` fibers asks for the next key when its request has ended.
measurement load(const options& settings) {
  motet::thread_pool cpu(3, "cpu");
  motet::thread_pool net(2, "net");
  cache_on_strand<memory_store> memory(cpu);
  cache_on_strand<disk_store> disk(cpu, settings.directory);
  client to_server(motet::net::endpoint::loopback(settings.port));
  counting_interface user;
  fetcher fetch(memory, disk, to_server, net, user);

  measurement result;
  int number = 0;
  const auto begin = steady::now();
  motet::group askers;
  for (int i = 0; i < std::min(settings.in_flight, settings.requests); ++i) {
    askers.spin([&] {
      while (number < settings.requests) {
        request wish{"key " + std::to_string(number++),
                     {},
                     std::chrono::minutes(1),
                     std::chrono::minutes(1)};
        const auto start = steady::now();
        cpu.submit([&fetch, wish = std::move(wish)] { return fetch.handle(wish); }).get();
        result.latencies.push_back(steady::now() - start);
      }
    });
  }
  askers.await_all();
  result.length = steady::now() - begin;
  if (user.values() != settings.requests) throw std::runtime_error("a request has failed");
  return result;
}

void measure(const options& settings) {
  auto [latencies, length] = load(settings);
  std::sort(latencies.begin(), latencies.end());
  const auto percentile = [&sorted = latencies](std::size_t percent) {
    return sorted[(sorted.size() - 1) * percent / 100].count();
  };
  std::printf(
      "{\"requests\":%zu,\"seconds\":%g,\"requests_per_second\":%g,\"p50_us\":%g,\"p99_us\":%g}\n",
      latencies.size(), length.count(), static_cast<double>(latencies.size()) / length.count(),
      percentile(50), percentile(99));
}

}  // namespace

int main(int count, char** words) {
  try {
    const options settings = parse(count, words);
    if (settings.is_server) serve(settings.delay);
    measure(settings);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fiber_fetch: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
