// SPDX-License-Identifier: MIT
// Thousands of clients that ask again and again, and a server that drains among them: each request
// that was sent is answered.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "http/talk.hpp"
#include "quiet.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

struct tally {
  std::size_t answers = 0;
  std::size_t failures = 0;
  std::size_t ended_well = 0;  // told that the connection ends with the answer
};

/// Asks every now and then until the server ends the connection.
void ask(const net::endpoint& address, std::size_t index, tally& counts) {
  try {
    tcp_stream peer = tcp_stream::connect(address);
    for (std::size_t round = 0;; ++round) {
      sleep_for(std::chrono::milliseconds(100 + (index * 7919 + round * 104729) % 400));
      peer.write_all(get("/" + std::to_string(index)));
      const std::string answer = read_text(peer, 4096);
      const bool whole =
          contains(answer, "200 OK") && answer.ends_with("/" + std::to_string(index) + " ");
      ++(whole ? counts.answers : counts.failures);
      if (!whole) return;
      if (contains(answer, "Connection: close")) {
        ++counts.ended_well;
        return;
      }
    }
  } catch (const std::system_error&) {
    ++counts.failures;
  }
}

/// Raises the limit of descriptors. Returns: `connections`, or as many as there may be.
std::size_t room_for(std::size_t connections) {
  const rlim_t descriptors = connections * 2 + 200;
  rlimit files{descriptors, descriptors};
  if (::setrlimit(RLIMIT_NOFILE, &files) == 0) return connections;
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return std::min<std::size_t>(connections, (files.rlim_cur - 200) / 2);
}

TEST_CASE("http::serve() answers every request when it drains thousands of clients") {
  if (on_sim()) return;  // each of whose threads has a time of its own
  const std::size_t clients = room_for(scaled(under_tsan || under_asan ? 1'000 : 10'000, 200));
  const auto lasts = std::chrono::milliseconds(scaled(60'000, 600));
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint address = listener.local_endpoint();
  std::stop_source stop;
  tally counts;
  std::thread asker([&] {
    run_here([&] {
      group askers;
      for (std::size_t index = 0; index < clients; ++index) {
        askers.spin([&, index] { ask(address, index, counts); });
      }
      sleep_for(lasts);
      stop.request_stop();
      askers.await_all();
    });
  });
  http::serve_options options;
  options.connections.drain = stop.get_token();
  const std::size_t cut_count = http::serve(listener, options, echo);
  asker.join();
  CHECK(cut_count == 0);
  CHECK(counts.failures == 0);
  CHECK(counts.ended_well == clients);
  CHECK(counts.answers > clients);
}

TEST_CASE("http::serve() answers others while a crowd sends a byte now and then, and drops it") {
  if (on_sim()) return;
  const std::size_t clients = room_for(scaled(2'000, 200));
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint address = listener.local_endpoint();
  std::stop_source stop;
  std::size_t dropped = 0;
  std::size_t answered = 0;
  clock::duration slowest{};
  std::thread asker([&] {
    run_here([&] {
      group slow;
      for (std::size_t index = 0; index < clients; ++index) {
        slow.spin([&] {
          tcp_stream peer = tcp_stream::connect(address);
          const std::string text = get("/" + std::string(1000, 'x'));
          std::error_code error;
          for (std::size_t position = 0; !error && position < text.size(); ++position) {
            peer.write_all(testing::bytes_of(text).subspan(position, 1), error);
            sleep_for(50ms);
          }
          if (error) ++dropped;
        });
      }
      while (slow.size() > 0) {
        const auto start = clock::now();
        tcp_stream peer = tcp_stream::connect(address);
        peer.write_all(get("/", "Connection: close\r\n"));
        if (contains(read_to_end(peer), "200 OK")) ++answered;
        slowest = std::max(slowest, clock::now() - start);
        sleep_for(10ms);
      }
    });
    stop.request_stop();
  });
  http::serve_options options;
  options.connections.drain = stop.get_token();
  options.rest_of_head = 500ms;
  CHECK(http::serve(listener, options, echo) == 0);
  asker.join();
  CHECK(dropped == clients);
  CHECK(answered > 20);
  CHECK(slowest < 2s);
}

}  // namespace
