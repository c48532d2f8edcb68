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
std::size_t fitting(std::size_t connections) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, 4'096));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(connections, limit.rlim_cur / 2 - 100);
}

std::mt19937 seeded() {
  const char* text = std::getenv("MOTET_TEST_SEED");
  const auto seed = text == nullptr ? 1 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  return std::mt19937(seed);
}

/// Lines there and back through all that servers are made of.
void answer(tcp_stream peer) {
  move_on_when_closed(peer, [&] {
    reader input(peer);
    writer output(peer);
    for (const std::string_view line : input.lines()) {
      output.write(line);
      output.write("\n");
    }
  });
}

class clients {
 public:
  explicit clients(const endpoint& address) : address_(address) {}

  /// One connection after another, each reset or closed at a random moment.
  void come_and_go(clock::time_point end) {
    // On virtual time nothing would end them, as long as one has something to do.
    for (int rounds = testing::on_sim() ? 4 : std::numeric_limits<int>::max(); rounds > 0;
         --rounds) {
      if (clock::now() >= end) return;
      tcp_stream server = tcp_stream::connect(address_);
      const bool resets = chance(2);
      if (resets) testing::reset_when_closed(server);
      // On a machine that is slow at present only the patient ones are served.
      const auto patience = chance(20) ? 5s : std::chrono::microseconds(random_() % 20'000);
      try {
        move_on_after(patience, [&] { talk(server); });
      } catch (const std::system_error&) {
        ++failures;
      }
      ++(resets ? reset : closings);
    }
  }

  std::size_t lines = 0;
  std::size_t reset = 0;
  std::size_t closings = 0;
  std::size_t failures = 0;

 private:
  bool chance(unsigned odds) { return random_() % odds == 0; }

  void talk(tcp_stream& server) {
    reader input(server);
    for (auto rounds = random_() % 50; rounds > 0; --rounds) {
      const std::string line(random_() % 3'000, 'a');
      server.write_all(line + "\n");
      if (chance(5)) snooze();
      if (input.line() != line)
        throw std::system_error(std::make_error_code(std::errc::bad_message));
      ++lines;
      if (chance(3)) sleep_for(std::chrono::microseconds(random_() % 2'000));
    }
  }

  endpoint address_;
  std::mt19937 random_ = seeded();
};

}  // namespace

TEST_CASE("tcp_listener::serve() leaves nothing behind after random resets", "[reset]") {
  const std::size_t count = fitting(scaled(1'000, 100));
  const auto length = std::chrono::seconds(scaled(60, 1));
  const std::size_t descriptors = testing::open_descriptors();
  run([&] {
    tcp_listener listener(endpoint::loopback(0), {.backlog = 4'096});
    clients crowd(listener.local_endpoint());
    std::stop_source stop;
    std::size_t failures = 0;
    auto server = spin([&] {
      return listener.serve({.drain = stop.get_token(),
                             .grace = 5s,
                             .on_error = [&](const std::exception_ptr&) { ++failures; }},
                            answer);
    });
    {
      group visitors;
      const auto end = clock::now() + length;
      for (std::size_t i = 0; i < count; ++i) visitors.spin([&] { crowd.come_and_go(end); });
      visitors.await_all();
    }
    stop.request_stop();
    CHECK(server.await() == 0);
    CHECK(crowd.lines > 0);
    CHECK(crowd.reset > count / 4);
    CHECK(crowd.closings > count / 4);
    CHECK(crowd.failures == 0);  // no client sees a failure that it has not caused
  });
  CHECK(testing::open_descriptors() == descriptors);
}
