// SPDX-License-Identifier: MIT
// The example server, unchanged, on a host that crashes: what it has answered is there afterwards.
#include <chrono>
#include <cstdint>
#include <functional>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "../examples/kv_server/resp.hpp"
#include "../examples/kv_server/server.hpp"
#include "catch.hpp"
#include "support.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::history;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::world;

constexpr std::uint16_t port = 6'380;

void serve(bool syncs) {
  net::tcp_listener listener(net::endpoint::any(port));
  serve_store(listener, "/kv.log", syncs, {.on_error = [](const std::exception_ptr&) {}});
}

/// A connection to the server, which asks one question at a time.
class client {
 public:
  client() : stream_(net::tcp_stream::connect("server", port)), input_(stream_, 4'096) {}

  std::optional<std::string> get(std::string_view key) {
    send({"GET", key});
    const std::string line = answer();
    if (line == "$-1") return std::nullopt;
    return answer();
  }

  void set(std::string_view key, std::string_view value) {
    send({"SET", key, value});
    if (answer() != "+OK") throw std::runtime_error("SET was not answered with OK");
  }

 private:
  void send(const std::vector<std::string_view>& words) {
    std::string text;
    resp::add_command(text, words);
    stream_.write_all(text);
  }

  /// A line without its end.
  std::string answer() {
    const std::optional<std::string_view> line = input_.line();
    if (!line.has_value()) throw std::system_error(ECONNRESET, std::system_category());
    std::string text(*line);
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }

  net::tcp_stream stream_;
  reader<net::tcp_stream> input_;
};

constexpr const char* keys[] = {"a", "b"};

/// Asks until its time is over; notes what it has been told.
void ask_on(world& in, history& seen, int number, int& questions) {
  std::optional<client> connection;
  for (int i = 0; i < 12; ++i) {
    sleep_for(std::chrono::milliseconds(in.random(300)));
    try {
      const auto limit = move_on_after(2s, [&] {
        if (!connection) connection.emplace();
        const std::string key = keys[in.random(2)];
        if (in.random(2) == 0) {
          const std::size_t operation = seen.begin_read(key);
          seen.end_read(operation, connection->get(key));
        } else {
          const std::string value = std::to_string(number) + "." + std::to_string(i);
          const std::size_t operation = seen.begin_write(key, value);
          connection->set(key, value);
          seen.end_write(operation);
        }
        ++questions;
      });
      if (!limit) connection.reset();
    } catch (const std::system_error&) {
      connection.reset();
    }
  }
}

/// Three clients, and a server that crashes now and then.
void store_under_crashes(world& in, bool syncs, int& questions) {
  history seen;
  host server = in.add("server", [syncs] { serve(syncs); });
  std::vector<host> clients;
  int running = 3;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(in.add("client" + std::to_string(i), [&, i] {
      ask_on(in, seen, i, questions);
      --running;
    }));
  }
  for (int i = 0; i < 3; ++i) {
    sleep_for(std::chrono::milliseconds(in.random(1'000)));
    if (in.random(3) == 0) {
      in.partition(clients[in.random(3)], server);
      sleep_for(500ms);
      in.heal();
    }
    in.crash(server);
    sleep_for(std::chrono::milliseconds(in.random(200)));
    in.restart(server);
  }
  in.eventually([&] { return running == 0; }, 10min);
  if (const std::optional<std::string> violation = seen.violation())
    throw std::runtime_error(*violation);
}

}  // namespace

TEST_CASE(
    "testing::history: what the example kv_server has answered survives crashes and power "
    "failures") {
  int questions = 0;
  const std::size_t seeds = ::testing::scaled(100'000, ::testing::under_tsan ? 50 : 300);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const outcome result = motet::testing::run(
        {.seed = seed}, [&](world& in) { store_under_crashes(in, true, questions); });
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
  CHECK(questions > static_cast<int>(seeds) * 5);
}

TEST_CASE("testing::history: without fsync kv_server loses answers, which few seeds show") {
  int questions = 0;
  std::uint64_t seed = 0;
  outcome result;
  do {
    result = motet::testing::run({.seed = seed},
                                 [&](world& in) { store_under_crashes(in, false, questions); });
  } while (result.passed && ++seed < 1'000);
  CHECK(seed < 1'000);
  CHECK(result.failure.find("no order of these operations") != std::string::npos);
}
