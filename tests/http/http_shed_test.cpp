// SPDX-License-Identifier: MIT
// A server that is asked for more than it can do.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "http/talk.hpp"
#include "quiet.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto work = 500us;
constexpr std::size_t clients = 200;

void compute(std::chrono::microseconds how_long) {
  const auto end = steady::now() + how_long;
  while (steady::now() < end) continue;
}

struct outcome {
  double answered = 0;  // of what the server could have done
  std::size_t refused = 0;
  steady::duration p99{};  // of those answered
};

/// Asks a server whose handler computes for half a millisecond, by `load` times as much as it can
/// do, at times that do not depend on the answers.
outcome ask(double load, clock::duration shed, clock::duration lasts) {
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint where = listener.local_endpoint();
  std::stop_source stop;
  outcome found;
  std::thread asking([&] {
    run_here([&] {
      std::vector<steady::duration> times;
      std::size_t refused = 0;
      const auto between = std::chrono::duration_cast<steady::duration>(work / load * clients);
      const auto begun = steady::now();
      group all;
      for (std::size_t index = 0; index < clients; ++index) {
        all.spin([&, index] {
          tcp_stream peer = tcp_stream::connect(where);
          for (auto due = begun + between * index / clients; due < begun + lasts; due += between) {
            sleep_until(clock::time_point(due.time_since_epoch()));
            peer.write_all(get("/"));
            const std::string answer = read_text(peer, 4096);
            if (contains(answer, " 503 ")) {
              ++refused;
            } else {
              times.push_back(steady::now() - due);
            }
          }
        });
      }
      all.await_all();
      const auto took = steady::now() - begun;
      std::sort(times.begin(), times.end());
      found.answered = static_cast<double>(times.size()) *
                       std::chrono::duration<double>(work).count() /
                       std::chrono::duration<double>(took).count();
      found.refused = refused;
      found.p99 = times.at(times.size() * 99 / 100);
    });
    stop.request_stop();
  });
  http::serve_options how;
  how.connections.drain = stop.get_token();
  how.shed_when_late = shed;
  http::serve(listener, how, [](request&, response& answer) {
    compute(work);
    answer.write("done");
  });
  asking.join();
  return found;
}

/// Somebody else may use the machine for a moment: then it is measured again.
TEST_CASE("a server that sheds goes on answering, and soon, when it is asked for too much") {
  if (on_sim()) return;  // whose time does not pass while something is computed
  const std::chrono::milliseconds lasts(scaled(1500, 700));
  bool is_worth_it = false;
  for (int tries = 0; tries < 4 && !is_worth_it; ++tries) {
    const outcome shedding = ask(1.5, 5ms, lasts);
    const outcome patient = ask(1.5, 0ms, lasts);
    CHECK(shedding.refused > 0);
    CHECK(patient.refused == 0);
    const bool is_sooner = shedding.p99 < patient.p99 * 7 / 10;
    const bool is_as_much = shedding.answered > patient.answered * 0.9;
    is_worth_it = is_sooner && (is_as_much || under_tsan || under_asan);
  }
  CHECK(is_worth_it);
}

TEST_CASE("a server that is not asked for too much refuses nothing") {
  if (on_sim()) return;
  std::size_t refused = 1;
  for (int tries = 0; tries < 4 && refused > 0; ++tries) {
    sleep_for(300ms);  // what the thread was late before is over
    refused = ask(0.3, 20ms, 300ms).refused;
  }
  CHECK(refused == 0);
}

}  // namespace
