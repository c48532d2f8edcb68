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
void ask(const net::endpoint& where, std::size_t index, tally& found) {
  try {
    tcp_stream peer = tcp_stream::connect(where);
    for (std::size_t round = 0;; ++round) {
      sleep_for(std::chrono::milliseconds(100 + (index * 7919 + round * 104729) % 400));
      peer.write_all(get("/" + std::to_string(index)));
      const std::string answer = read_text(peer, 4096);
      const bool whole =
          contains(answer, "200 OK") && answer.ends_with("/" + std::to_string(index) + " ");
      ++(whole ? found.answers : found.failures);
      if (!whole) return;
      if (contains(answer, "Connection: close")) {
        ++found.ended_well;
        return;
      }
    }
  } catch (const std::system_error&) {
    ++found.failures;
  }
}

/// Raises the limit of descriptors. Returns: `wanted` connections, or as many as there may be.
std::size_t room_for(std::size_t wanted) {
  const rlim_t needed = wanted * 2 + 200;
  rlimit files{needed, needed};
  if (::setrlimit(RLIMIT_NOFILE, &files) == 0) return wanted;
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return std::min<std::size_t>(wanted, (files.rlim_cur - 200) / 2);
}

TEST_CASE("a server that drains among thousands of clients leaves no request without its answer") {
  if (on_sim()) return;  // each of whose threads has a time of its own
  const std::size_t clients = room_for(scaled(under_tsan || under_asan ? 1'000 : 10'000, 200));
  const auto lasts = std::chrono::milliseconds(scaled(60'000, 600));
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint where = listener.local_endpoint();
  std::stop_source stop;
  tally found;
  std::thread asking([&] {
    run_here([&] {
      group all;
      for (std::size_t index = 0; index < clients; ++index) {
        all.spin([&, index] { ask(where, index, found); });
      }
      sleep_for(lasts);
      stop.request_stop();
      all.await_all();
    });
  });
  http::serve_options how;
  how.connections.drain = stop.get_token();
  const std::size_t cut = http::serve(listener, how, echo);
  asking.join();
  CHECK(cut == 0);
  CHECK(found.failures == 0);
  CHECK(found.ended_well == clients);
  CHECK(found.answers > clients);
}

TEST_CASE("a crowd that sends a byte now and then keeps nobody from being answered, and is left") {
  if (on_sim()) return;
  const std::size_t clients = room_for(scaled(2'000, 200));
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint where = listener.local_endpoint();
  std::stop_source stop;
  std::size_t left = 0;
  std::size_t answered = 0;
  clock::duration slowest{};
  std::thread asking([&] {
    run_here([&] {
      group slow;
      for (std::size_t index = 0; index < clients; ++index) {
        slow.spin([&] {
          tcp_stream peer = tcp_stream::connect(where);
          const std::string text = get("/" + std::string(1000, 'x'));
          std::error_code error;
          for (std::size_t at = 0; !error && at < text.size(); ++at) {
            peer.write_all(testing::bytes_of(text).subspan(at, 1), error);
            sleep_for(50ms);
          }
          if (error) ++left;
        });
      }
      while (slow.size() > 0) {
        const auto begun = clock::now();
        tcp_stream peer = tcp_stream::connect(where);
        peer.write_all(get("/", "Connection: close\r\n"));
        if (contains(read_to_end(peer), "200 OK")) ++answered;
        slowest = std::max(slowest, clock::now() - begun);
        sleep_for(10ms);
      }
    });
    stop.request_stop();
  });
  http::serve_options how;
  how.connections.drain = stop.get_token();
  how.rest_of_head = 500ms;
  CHECK(http::serve(listener, how, echo) == 0);
  asking.join();
  CHECK(left == clients);
  CHECK(answered > 20);
  CHECK(slowest < 2s);
}

}  // namespace
