// SPDX-License-Identifier: MIT
// C3: caches that keep every thread of their pool blocked delay neither the network nor the user.
#include <set>

#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

constexpr int requests = 20;
constexpr std::size_t processors = 3;
constexpr auto stall = 800ms;

/// One request should do; but it is lost on a thread that is blocked already, and then another is
/// made, for which the pool takes another thread.
void block_thread_of(fetcher& stalled, house& its, const event_log& blocked,
                     const own_server& server, std::vector<request_ref>& stalls) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const request_ref asked = its.ui().ask([&] {
      return stalled.handle_key(
          "stall " + std::to_string(stalls.size()),
          {.server = server.where(), .overall = 10s, .disk_get = stall, .disk_blocks = true});
    });
    stalls.push_back(asked);
    for (const auto give_up = steady::now() + 20ms; steady::now() < give_up;) {
      if (trace(blocked, asked->key()).has("disk_get")) return;
      motet::sleep_for(500us);
    }
  }
}

}  // namespace

void check_stalled_caches(report& found) {
  const own_server server({.reply_after = 200ms});
  stage here(found, {.cpu = processors, .net = 2});
  // A strand is one thread: each of these disks has its own.
  event_log blocked;
  std::vector<std::unique_ptr<temporary_directory>> directories;
  std::vector<std::unique_ptr<fetcher>> stalled;
  for (std::size_t i = 0; i < processors; ++i) {
    directories.push_back(std::make_unique<temporary_directory>());
    stalled.push_back(std::make_unique<fetcher>(here.its().cpu(), here.its().net(), here.its().ui(),
                                                directories.back()->path(), blocked));
  }

  std::vector<request_ref> asked;
  for (int i = 0; i < requests; ++i) {
    asked.push_back(
        here.ask("fetch " + std::to_string(i), {.server = server.where(), .overall = 10s}));
  }
  for (const request_ref& each : asked) await_event(here.log(), each->key(), "sent");

  here.its().ui().loop().forget_gaps();
  std::vector<request_ref> stalls;
  for (const auto& each : stalled) block_thread_of(*each, here.its(), blocked, server, stalls);
  std::set<std::string> blocked_threads;
  for (const event& each : blocked.all()) {
    if (std::string_view(each.what) == "disk_get") blocked_threads.insert(each.thread);
  }
  found.expect(blocked_threads.size() == processors, "not every processor's thread is blocked");

  const motet::future<void> probe = here.its().cpu().submit([] {});

  std::vector<motet::future<std::string>> direct;
  for (int i = 0; i < requests; ++i) {
    direct.push_back(here.its().net().submit([&, i] {
      const stretch running;
      return here.fetch().net().get("direct " + std::to_string(i), server.where());
    }));
  }
  for (const auto& each : direct) found.expect(each.get().ends_with(" world!"), "a direct answer");
  const auto direct_over = steady::now();
  const auto stalled_for = direct_over - blocked.all().front().at;
  found.expect(!probe.ready() || stalled_for > stall, "nobody was kept from running");

  for (int i = 0; i < requests; ++i) {
    for (const char* kind : {"fetch ", "direct "}) {
      const std::string key = kind + std::to_string(i);
      await_event(here.log(), key, "received");
      const trace its(here.log(), key);
      found.expect_time(its.at("received") - its.at("connect"), 200ms, 260ms,
                        key + " beside stalled caches");
    }
  }
  found.expect_time(here.its().ui().loop().longest_gap(), 0ms, 30ms, "the heart's longest pause");
  for (const request_ref& each : stalls) {
    found.expect(each->await().how == outcome::kind::value, each->key() + " has not ended well");
  }
  found.expect_time(stalled_for, 0ms, stall, "all that beside a stall");
  for (const request_ref& each : asked) here.expect_value(each);
  here.its().cpu().drain();  // nobody uses those fetchers any more
}

}  // namespace cached_fetch
