// SPDX-License-Identifier: MIT
// C9: ten thousand requests at once, with one thread for the work and one for the sockets.
#include <sys/resource.h>

#include <algorithm>

#include "../machine.hpp"
#include "../server_process.hpp"
#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

/// So many descriptors this process may have.
std::size_t raise_limit_of_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

constexpr int at_a_time = 250;  // are started in one function of the user interface's

}  // namespace

void check_crowd(report& found, int requests) {
  constexpr std::size_t others = 200;
  const auto room = static_cast<int>(raise_limit_of_descriptors() - others);
  if (requests > room) {
    found.remark("there are descriptors for " + std::to_string(room) + " requests only");
    requests = room;
  }
  const server_process server({.reply_after = 100ms});  // with descriptors of its own
  const std::size_t threads_before = count_threads();
  stage here(found, {.cpu = found.watched() ? std::size_t{3} : std::size_t{1}, .net = 1});
  const plan how{.server = server.where(), .overall = 30s, .network = 30s};
  forget_stretches();

  const machine_share share(server.process());
  const auto begin = steady::now();
  std::vector<request_ref> asked;
  const auto under_way = [&] {
    return static_cast<int>(asked.size()) - here.fetch().seen().fetched;
  };
  while (static_cast<int>(asked.size()) < requests) {
    // ThreadSanitizer knows 8,000 fibers, and a request has up to three.
    while (found.watched() && under_way() > 1'000) motet::sleep_for(1ms);
    here.its().ui().ask([&] {
      for (int i = 0; i < at_a_time && static_cast<int>(asked.size()) < requests; ++i) {
        asked.push_back(here.post("key " + std::to_string(asked.size()), how));
      }
    });
  }
  std::size_t most_threads = 0;
  std::size_t fewest_threads = ~std::size_t{0};
  const auto count = [&] {
    const std::size_t now = count_threads() - threads_before + 1;
    most_threads = std::max(most_threads, now);
    fewest_threads = std::min(fewest_threads, now);
  };
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i]->await();
    if (i % 500 == 0) count();
  }
  found.expect_time(steady::now() - begin, 100ms,
                    std::chrono::duration_cast<report::span>(3s / share.left_by_others()),
                    "all of it");
  for (const request_ref& each : asked) here.expect_value(each);
  found.expect(most_threads == here.its().threads() && fewest_threads == most_threads,
               "there were between " + std::to_string(fewest_threads) + " and " +
                   std::to_string(most_threads) + " threads");
  for (const auto& [thread, length] : longest_stretches()) {
    if (thread == "ui" || thread == "main") continue;
    found.expect_time(length, 0ms, 20ms, "a fiber of " + thread + " without a switch");
  }
  for (int i : {0, requests / 2, requests - 1}) here.expect_kept("key " + std::to_string(i));
}

}  // namespace cached_fetch
