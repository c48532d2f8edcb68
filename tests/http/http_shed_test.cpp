// SPDX-License-Identifier: MIT
// A server that is asked for more than it can do.
#include <sys/resource.h>
#include <time.h>

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

/// How much of a thread's time is spent in handlers, from the first one to the end of the last.
/// Between two handlers, time in which another process used the processor does not count, unless
/// the thread slept as well.
class usefulness {
 public:
  void compute(steady::duration duration) {
    const auto start = steady::now();
    if (ended_at_ != steady::time_point()) between_ += time_since_the_last(start);
    while (steady::now() - start < duration) continue;
    ended_at_ = steady::now();
    in_handlers_ += duration;
    at_the_end_ = used::by_thread();
  }

  double share() const {
    return std::chrono::duration<double>(in_handlers_) / (in_handlers_ + between_);
  }

 private:
  struct used {
    steady::duration processor{};
    long sleeps = 0;

    static used by_thread() {
      timespec time{};
      rusage usage{};
      CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
      CHECK(::getrusage(RUSAGE_THREAD, &usage) == 0);
      return {std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec),
              usage.ru_nvcsw};
    }
  };
  steady::duration time_since_the_last(steady::time_point start) const {
    const used present = used::by_thread();
    const bool slept = present.sleeps > at_the_end_.sleeps;
    return slept ? start - ended_at_ : present.processor - at_the_end_.processor;
  }

  used at_the_end_;
  steady::time_point ended_at_;
  steady::duration in_handlers_{};
  steady::duration between_{};
};

enum class connections { kept, fresh };

struct outcome {
  double useful = 0;  // part of the server's time
  std::size_t refused = 0;
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
  outcome sum() {
    std::sort(times.begin(), times.end());
    return {0, refused, times.empty() ? steady::duration::max() : times[times.size() * 99 / 100]};
  }
};

/// Asks at times that do not depend on the answers, `load` times as often as the server can answer.
outcome ask_at(const net::endpoint& address, double load, connections kind, clock::duration lasts) {
  results tally;
  std::vector<std::optional<tcp_stream>> peers(clients);
  for (auto& peer : peers) {
    if (kind == connections::kept) peer = tcp_stream::connect(address);
  }
  const auto interval = std::chrono::duration_cast<steady::duration>(work / load * clients);
  const auto start = steady::now();
  group tasks;
  for (std::size_t index = 0; index < clients; ++index) {
    tasks.spin([&, index] {
      std::optional<tcp_stream>& peer = peers[index];
      for (auto due = start + interval * index / clients; due < start + lasts; due += interval) {
        sleep_until(clock::time_point(due.time_since_epoch()));
        if (kind == connections::fresh) peer = tcp_stream::connect(address);
        peer->write_all(get("/"));
        tally.note(read_text(*peer, 4096), due);
      }
    });
  }
  tasks.await_all();
  return tally.sum();
}

/// A server whose handler computes, and its clients on another thread.
outcome ask(double load, connections kind, clock::duration shed, clock::duration lasts) {
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint address = listener.local_endpoint();
  std::stop_source stop;
  outcome result;
  std::thread asker([&] {
    run_here([&] { result = ask_at(address, load, kind, lasts); });
    stop.request_stop();
  });
  http::serve_options options;
  options.connections.drain = stop.get_token();
  options.shed_when_late = shed;
  usefulness of_server;
  http::serve(listener, options, [&](request&, response& answer) {
    of_server.compute(work);
    answer.write("done");
  });
  asker.join();
  result.useful = of_server.share();
  return result;
}

}  // namespace

/// Somebody else may use the machine for a moment: then it is measured again.
TEST_CASE("http::serve_options::shed_when_late keeps an overloaded server busy and prompt") {
  if (on_sim()) return;  // whose time does not pass while something is computed
  struct overload {
    double load;
    connections kind;
  };
  const std::vector<overload> cases{{1.5, connections::kept}, {1.5, connections::fresh},
                                    {3, connections::fresh},  {3, connections::kept},
                                    {10, connections::kept},  {10, connections::fresh}};
  const std::chrono::milliseconds lasts(scaled(3'000, 700));
  for (std::size_t i = 0; i < cases.size(); i += scaled(1, 2)) {
    CAPTURE(cases[i].load, cases[i].kind == connections::kept);
    outcome result;
    const auto is_well = [&] {
      const bool is_watched = under_tsan || under_asan;  // where to refuse takes long as well
      return (result.useful >= 0.95 || is_watched) && result.p99 < 250ms;
    };
    for (int tries = 0; tries < 8 && !is_well(); ++tries) {
      result = ask(cases[i].load, cases[i].kind, 5ms, lasts);
      CHECK(result.refused > 0);
    }
    CAPTURE(result.useful, result.p99.count() / 1'000'000);
    CHECK(is_well());
  }
}

TEST_CASE("http::serve() without shed_when_late refuses nothing under overload, and answers late") {
  if (on_sim()) return;
  const outcome result = ask(3, connections::kept, 0ms, 500ms);
  CHECK(result.refused == 0);
  CHECK(result.p99 > 500ms);
}

TEST_CASE("http::serve_options::shed_when_late refuses nothing below overload") {
  if (on_sim()) return;
  std::size_t refused = 1;
  for (int tries = 0; tries < 4 && refused > 0; ++tries) {
    sleep_for(300ms);  // what the thread was late before is over
    refused = ask(0.3, connections::kept, 20ms, 300ms).refused;
  }
  CHECK(refused == 0);
}
