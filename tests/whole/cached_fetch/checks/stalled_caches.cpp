// SPDX-License-Identifier: MIT
// C3: caches that block every thread of their pool delay neither the network nor the user.
#include <set>

#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

constexpr int requests = 20;
constexpr std::size_t processors = 3;
constexpr auto stall = 800ms;

/// A request that lands on a blocked thread blocks no other one, so there are several attempts: the
/// pool takes another thread for each.
void block_thread_of(observed_fetcher& fetcher, house& home, const event_log& stall_log,
                     const own_server& server, std::vector<question_ref>& stalls) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const question_ref wish = home.ui().ask([&] {
      return fetcher.handle_key(
          "stall " + std::to_string(stalls.size()),
          {.server = server.where(), .overall = 10s, .disk_get = stall, .disk_blocks = true});
    });
    stalls.push_back(wish);
    for (const auto end = steady::now() + 20ms; steady::now() < end;) {
      if (trace(stall_log, wish->key()).has("disk_get")) return;
      motet::sleep_for(500us);
    }
  }
}

}  // namespace

void check_stalled_caches(report& findings) {
  const own_server server({.reply_after = 200ms});
  stage scene(findings, {.cpu = processors, .net = 2});
  // A strand is one thread, so each thread needs a disk of its own.
  event_log stall_log;
  std::vector<std::unique_ptr<temporary_directory>> directories;
  std::vector<std::unique_ptr<observed_fetcher>> fetchers;
  for (std::size_t i = 0; i < processors; ++i) {
    directories.push_back(std::make_unique<temporary_directory>());
    fetchers.push_back(std::make_unique<observed_fetcher>(scene.home().cpu(), scene.home().net(),
                                                          scene.home().ui(),
                                                          directories.back()->path(), stall_log));
  }

  std::vector<question_ref> wishes;
  for (int i = 0; i < requests; ++i) {
    wishes.push_back(
        scene.ask("fetch " + std::to_string(i), {.server = server.where(), .overall = 10s}));
  }
  for (const question_ref& wish : wishes) await_event(scene.log(), wish->key(), "sent");

  scene.home().ui().loop().forget_gaps();
  std::vector<question_ref> stalls;
  for (const auto& fetcher : fetchers)
    block_thread_of(*fetcher, scene.home(), stall_log, server, stalls);
  std::set<std::string> stalled_threads;
  for (const event& entry : stall_log.events()) {
    if (std::string_view(entry.kind) == "disk_get") stalled_threads.insert(entry.thread);
  }
  findings.expect(stalled_threads.size() == processors, "not every processor's thread is blocked");

  const motet::future<void> probe = scene.home().cpu().submit([] {});

  std::vector<motet::future<std::string>> downloads;
  for (int i = 0; i < requests; ++i) {
    downloads.push_back(scene.home().net().submit(
        [&, i] { return scene.fetch().ask("direct " + std::to_string(i), server.where()); }));
  }
  for (const auto& download : downloads)
    findings.expect(download.get().ends_with(" world!"), "a direct answer");
  const auto end = steady::now();
  const auto length = end - stall_log.events().front().time;
  findings.expect(!probe.ready() || length > stall, "nobody was kept from running");

  for (int i = 0; i < requests; ++i) {
    for (const char* kind : {"fetch ", "direct "}) {
      const std::string key = kind + std::to_string(i);
      await_event(scene.log(), key, "received");
      const trace story(scene.log(), key);
      findings.expect_time(story.time_of("received") - story.time_of("connect"), 200ms, 260ms,
                           key + " beside stalled caches");
    }
  }
  findings.expect_time(scene.home().ui().loop().longest_gap(), 0ms, 30ms,
                       "the heart's longest pause");
  for (const question_ref& wish : stalls) {
    findings.expect(wish->await().end == outcome::kind::value, wish->key() + " has not ended well");
  }
  findings.expect_time(length, 0ms, stall, "all that beside a stall");
  for (const question_ref& wish : wishes) scene.expect_value(wish);
  scene.home().cpu().drain();  // before the fetchers end
}

}  // namespace fetch_test
