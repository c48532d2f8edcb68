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
constexpr auto lasts = 1500ms;
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
outcome ask(double load, clock::duration shed) {
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

TEST_CASE("a server that sheds goes on answering, and soon, when it is asked for too much") {
  if (on_sim()) return;  // whose time does not pass while something is computed
  const outcome patient = ask(1.5, 0ms);
  const outcome shedding = ask(1.5, 5ms);
  sleep_for(300ms);  // the thread's overload is over
  const outcome at_ease = ask(0.5, 5ms);
  CAPTURE(patient.answered, patient.p99.count(), shedding.answered, shedding.refused,
          shedding.p99.count(), at_ease.answered, at_ease.p99.count());
  CHECK(patient.refused == 0);
  CHECK(at_ease.refused == 0);
  CHECK(shedding.refused > 0);
  CHECK(shedding.p99 < patient.p99 / 2);
  if (!under_tsan && !under_asan) CHECK(shedding.answered > patient.answered * 0.9);
}

}  // namespace
