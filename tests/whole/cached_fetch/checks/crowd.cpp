// SPDX-License-Identifier: MIT
// C9: ten thousand requests at once, with one thread for the work and one for the sockets.
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <motet/observe/stats.hpp>
#include <string>

#include "../machine.hpp"
#include "../server_process.hpp"
#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

/// Returns: how many descriptors this process may have.
std::size_t raise_limit_of_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

using sites = std::map<std::string, motet::stall_stats>;

/// Returns: the fibers that have run for too long, by the places where they were spun; without main
/// fibers, which have no place.
sites stalls() {
  sites result;
  for (const motet::stall_stats& stall : motet::stats().stalls) {
    if (stall.site.line == 0) continue;
    result[std::string(stall.site.file) + (":" + std::to_string(stall.site.line))] = stall;
  }
  return result;
}

/// The test measures its own code, and motet the fibers as a whole.
void expect_short_runs(report& findings, const sites& old_stalls) {
  for (const auto& [thread, length] : longest_stretches()) {
    if (thread == "ui" || thread == "main") continue;
    findings.expect_time(length, 0ms, longest_run, "a fiber of " + thread + " without a switch");
  }
  for (const auto& [site, stall] : stalls()) {
    const auto entry = old_stalls.find(site);
    if (entry != old_stalls.end() && entry->second.stalls == stall.stalls) continue;
    findings.expect_time(stall.longest, 0ms, longest_run, "a fiber spun at " + site);
  }
}

constexpr int batch = 250;  // started in one function on the user's thread

}  // namespace

void check_crowd(report& findings, int requests) {
  constexpr std::size_t reserve = 200;
  const auto room = static_cast<int>(raise_limit_of_descriptors() - reserve);
  if (requests > room) {
    findings.remark("there are descriptors for " + std::to_string(room) + " requests only");
    requests = room;
  }
  const server_process server({.reply_after = 100ms});  // a process, for its descriptors
  const std::size_t old_threads = count_threads();
  stage scene(findings, {.cpu = findings.watched() ? std::size_t{3} : std::size_t{1}, .net = 1});
  const plan course{.server = server.where(), .overall = 30s, .network = 30s};
  forget_stretches();
  const sites old_stalls = stalls();

  const machine_share share(server.process());
  const auto begin = steady::now();
  std::vector<question_ref> wishes;
  const auto backlog = [&] {
    return static_cast<int>(wishes.size()) - scene.fetch().counts().fetched;
  };
  while (static_cast<int>(wishes.size()) < requests) {
    // ThreadSanitizer supports 8,000 fibers, and a request has up to three.
    while (findings.watched() && backlog() > 1'000) motet::sleep_for(1ms);
    scene.home().ui().ask([&] {
      for (int i = 0; i < batch && static_cast<int>(wishes.size()) < requests; ++i) {
        wishes.push_back(scene.post("key " + std::to_string(wishes.size()), course));
      }
    });
  }
  std::size_t max_threads = 0;
  std::size_t min_threads = ~std::size_t{0};
  const auto count = [&] {
    const std::size_t threads = count_threads() - old_threads + 1;
    max_threads = std::max(max_threads, threads);
    min_threads = std::min(min_threads, threads);
  };
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    wishes[i]->await();
    if (i % 500 == 0) count();
  }
  findings.expect_time(steady::now() - begin, 100ms,
                       std::chrono::duration_cast<report::span>(3s / share.left_by_others()),
                       "all of it");
  for (const question_ref& wish : wishes) scene.expect_value(wish);
  findings.expect(max_threads == scene.home().threads() && min_threads == max_threads,
                  "there were between " + std::to_string(min_threads) + " and " +
                      std::to_string(max_threads) + " threads");
  expect_short_runs(findings, old_stalls);
  for (int i : {0, requests / 2, requests - 1}) scene.expect_kept("key " + std::to_string(i));
}

}  // namespace fetch_test
