// SPDX-License-Identifier: MIT
// A server that is asked for more than it can do.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "http/talk.hpp"
#include "quiet.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto work = 20ms;  // many times what it takes to refuse a request
constexpr std::size_t clients = 200;

/// Returns: how long that has taken; more, if others use the processor.
steady::duration compute(steady::duration how_long) {
  const auto begun = steady::now();
  while (steady::now() - begun < how_long) continue;
  return steady::now() - begun;
}

enum class connections { kept, fresh };

struct outcome {
  double useful = 0;  // part of the time that the server spends in handlers
  std::size_t refused = 0;
  steady::duration took{};
  steady::duration p99{};  // of those answered
};

/// What the clients see, on one thread.
struct results {
  std::vector<steady::duration> times;
  std::size_t refused = 0;

  void note(const std::string& answer, steady::time_point due) {
    if (contains(answer, " 503 ")) {
      ++refused;
    } else if (contains(answer, "done")) {
      times.push_back(steady::now() - due);
    }
  }
  outcome after(steady::duration took) {
    std::sort(times.begin(), times.end());
    return {0, refused, took, times.empty() ? took : times[times.size() * 99 / 100]};
  }
};

/// Asks at times that do not depend on the answers, `load` times as often as the server can answer.
outcome ask_at(const net::endpoint& where, double load, connections which, clock::duration lasts) {
  results found;
  std::vector<std::optional<tcp_stream>> peers(clients);
  for (auto& each : peers) {
    if (which == connections::kept) each = tcp_stream::connect(where);
  }
  const auto between = std::chrono::duration_cast<steady::duration>(work / load * clients);
  const auto begun = steady::now();
  group all;
  for (std::size_t index = 0; index < clients; ++index) {
    all.spin([&, index] {
      std::optional<tcp_stream>& peer = peers[index];
      for (auto due = begun + between * index / clients; due < begun + lasts; due += between) {
        sleep_until(clock::time_point(due.time_since_epoch()));
        if (which == connections::fresh) peer = tcp_stream::connect(where);
        peer->write_all(get("/"));
        found.note(read_text(*peer, 4096), due);
      }
    });
  }
  all.await_all();
  return found.after(steady::now() - begun);
}

/// A server whose handler computes, and its clients on another thread.
outcome ask(double load, connections which, clock::duration shed, clock::duration lasts) {
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint where = listener.local_endpoint();
  std::stop_source stop;
  outcome found;
  std::thread asking([&] {
    run_here([&] { found = ask_at(where, load, which, lasts); });
    stop.request_stop();
  });
  http::serve_options how;
  how.connections.drain = stop.get_token();
  how.shed_when_late = shed;
  steady::duration busy{};
  http::serve(listener, how, [&](request&, response& answer) {
    busy += compute(work);
    answer.write("done");
  });
  asking.join();
  found.useful = std::chrono::duration<double>(busy).count() /
                 std::chrono::duration<double>(found.took).count();
  return found;
}

}  // namespace

/// Somebody else may use the machine for a moment: then it is measured again.
TEST_CASE("an overloaded server that sheds does as much as it can, and answers soon") {
  if (on_sim()) return;  // whose time does not pass while something is computed
  struct overload {
    double load;
    connections which;
  };
  const std::vector<overload> all{{1.5, connections::kept}, {1.5, connections::fresh},
                                  {3, connections::fresh},  {3, connections::kept},
                                  {10, connections::kept},  {10, connections::fresh}};
  const std::chrono::milliseconds lasts(scaled(3'000, 700));
  for (std::size_t i = 0; i < all.size(); i += scaled(1, 2)) {
    CAPTURE(all[i].load, all[i].which == connections::kept);
    outcome found;
    const auto is_well = [&] {
      const bool is_watched = under_tsan || under_asan;  // where to refuse takes long as well
      return (found.useful >= 0.95 || is_watched) && found.p99 < 250ms;
    };
    for (int tries = 0; tries < 8 && !is_well(); ++tries) {
      found = ask(all[i].load, all[i].which, 5ms, lasts);
      CHECK(found.refused > 0);
    }
    CAPTURE(found.useful, found.p99.count() / 1'000'000);
    CHECK(is_well());
  }
}

TEST_CASE("an overloaded server that does not shed refuses nothing, and answers late") {
  if (on_sim()) return;
  const outcome found = ask(3, connections::kept, 0ms, 500ms);
  CHECK(found.refused == 0);
  CHECK(found.p99 > 500ms);
}

TEST_CASE("a server that is not asked for too much refuses nothing") {
  if (on_sim()) return;
  std::size_t refused = 1;
  for (int tries = 0; tries < 4 && refused > 0; ++tries) {
    sleep_for(300ms);  // what the thread was late before is over
    refused = ask(0.3, connections::kept, 20ms, 300ms).refused;
  }
  CHECK(refused == 0);
}
