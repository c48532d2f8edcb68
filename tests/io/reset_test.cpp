// SPDX-License-Identifier: MIT
// Connections by the hundred that are reset at random moments, in the middle of whatever they do:
// nothing is left of them, and those that are not reset are served.
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <motet/motet.hpp>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/servers.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::scaled;

namespace {

/// How many connections there may be: each has two descriptors here.
std::size_t fitting(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, 4'096));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2 - 100);
}

std::mt19937 seeded() {
  const char* given = std::getenv("MOTET_TEST_SEED");
  const auto seed = given == nullptr ? 1 : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
  return std::mt19937(seed);
}

/// Lines there and back through all that servers are made of.
void answer(tcp_stream peer) {
  move_on_when_closed(peer, [&] {
    reader in(peer);
    writer out(peer);
    for (const std::string_view line : in.lines()) {
      out.write(line);
      out.write("\n");
    }
  });
}

class clients {
 public:
  explicit clients(const endpoint& where) : where_(where) {}

  /// One connection after another, each reset or closed at a random moment.
  void come_and_go(clock::time_point end) {
    // On virtual time nothing would end them, as long as one has something to do.
    for (int left = testing::on_sim() ? 4 : std::numeric_limits<int>::max(); left > 0; --left) {
      if (clock::now() >= end) return;
      tcp_stream server = tcp_stream::connect(where_);
      const bool resets = chance(2);
      if (resets) testing::reset_when_closed(server);
      // On a machine that is slow at present only the patient ones are served.
      const auto patience = chance(20) ? 5s : std::chrono::microseconds(random_() % 20'000);
      try {
        move_on_after(patience, [&] { talk(server); });
      } catch (const std::system_error&) {
        ++failed;
      }
      ++(resets ? reset : closed);
    }
  }

  std::size_t lines = 0;
  std::size_t reset = 0;
  std::size_t closed = 0;
  std::size_t failed = 0;

 private:
  bool chance(unsigned of) { return random_() % of == 0; }

  void talk(tcp_stream& server) {
    reader in(server);
    for (auto left = random_() % 50; left > 0; --left) {
      const std::string line(random_() % 3'000, 'a');
      server.write_all(line + "\n");
      if (chance(5)) snooze();
      if (in.line() != line) throw std::system_error(std::make_error_code(std::errc::bad_message));
      ++lines;
      if (chance(3)) sleep_for(std::chrono::microseconds(random_() % 2'000));
    }
  }

  endpoint where_;
  std::mt19937 random_ = seeded();
};

}  // namespace

TEST_CASE("connections that are reset at random leave nothing behind", "[reset]") {
  const std::size_t count = fitting(scaled(1'000, 100));
  const auto length = std::chrono::seconds(scaled(60, 1));
  const std::size_t before = testing::open_descriptors();
  run([&] {
    tcp_listener listener(endpoint::loopback(0), {.backlog = 4'096});
    clients all(listener.local_endpoint());
    std::stop_source stop;
    std::size_t failures = 0;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token(),
                             .grace = 5s,
                             .on_error = [&](const std::exception_ptr&) { ++failures; }},
                            answer);
    });
    {
      group coming;
      const auto end = clock::now() + length;
      for (std::size_t i = 0; i < count; ++i) coming.spin([&] { all.come_and_go(end); });
      coming.await_all();
    }
    stop.request_stop();
    CHECK(serving.await() == 0);
    CHECK(all.lines > 0);
    CHECK(all.reset > count / 4);
    CHECK(all.closed > count / 4);
    CHECK(all.failed == 0);  // no client sees a failure that it has not caused
  });
  CHECK(testing::open_descriptors() == before);
}
