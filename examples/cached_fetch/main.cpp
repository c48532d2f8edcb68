// SPDX-License-Identifier: MIT
// The cached fetch: a user interface that knows no fibers asks for values. Two caches are searched
// at once; if neither has the value, a server is asked, and both caches store the answer. Each step
// runs on the threads where it belongs, for work, for sockets or the user's, and fetcher.cpp still
// reads like a plain function. A request can be cancelled at any time, and has a time limit for the
// whole and one for the network.
//
// The program asks its own server for a few values and prints a line for each. Run: cached_fetch
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "fetcher.hpp"
#include "server.hpp"
#include "stores.hpp"
#include "ui_loop.hpp"

namespace cached_fetch { namespace {

using namespace std::chrono_literals;
using kind = outcome::kind;

constexpr std::array texts{"",         "cancelled", "timed out", "the network timed out",
                           "failed: ", "closed"};  // of each outcome::kind

/// Prints each outcome, and returns it from the click() that waits for it.
class window final : public user_interface {
 public:
  void post(std::function<void()> f) override { loop_.post(std::move(f)); }
  void show(const std::string& key, const outcome& result) override {
    std::printf("%s: %s%s\n", key.c_str(), texts.at(static_cast<std::size_t>(result.end)),
                result.text.c_str());
    std::exchange(answer_, {}).set_value(result.end);
  }

  /// Has `start` called on the loop's thread, as a button does, and blocks until the next outcome.
  kind click(std::function<void()> start) {
    auto answer = answer_.get_future();
    loop_.post(std::move(start));
    return answer.get();
  }

 private:
  std::promise<kind> answer_;
  ui_loop loop_;
};

struct temporary_directory {
  std::string path = std::filesystem::temp_directory_path() / "cached_fetch_XXXXXX";

  temporary_directory() {
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary directory");
  }
  ~temporary_directory() { std::filesystem::remove_all(path); }
};

/// Returns: whether each request ended as it should.
bool play() {
  const server origin(20ms);
  motet::thread_pool cpu(3, "cpu");
  motet::thread_pool net(2, "net");
  const temporary_directory directory;
  cache_on_strand<memory_store> memory(cpu);
  cache_on_strand<disk_store> disk(cpu, directory.path);
  client to_origin(origin.where());
  window user;
  fetcher fetch(memory, disk, to_origin, net, user);
  const auto ask = [&](const request& wish) {
    return user.click([&, wish] { cpu.post([&, wish] { fetch.handle(wish); }); });
  };

  const request apple{.key = "apple", .overall_limit = 10s, .network_limit = 10s};
  const bool is_fetched = ask(apple) == kind::value && origin.requests() == 1;
  const bool is_cached = ask(apple) == kind::value && origin.requests() == 1;

  std::stop_source stop;
  std::thread impatience([&] {
    while (origin.requests() == 1) std::this_thread::sleep_for(1ms);
    stop.request_stop();
  });
  const bool is_cancelled = ask({"slow bread", stop.get_token(), 10s, 10s}) == kind::cancelled;
  impatience.join();

  const request cherry{.key = "slow cherry", .overall_limit = 10s, .network_limit = 100ms};
  const bool is_late = ask(cherry) == kind::timed_out_network;
  cpu.drain();
  return is_fetched && is_cached && is_cancelled && is_late;
}

}}  // namespace cached_fetch

int main() {
  return cached_fetch::play() ? EXIT_SUCCESS : EXIT_FAILURE;
}
