// SPDX-License-Identifier: MIT
// C4 and C5: a request is cancelled before it starts, at each of its waits, and while what it has
// fetched is being kept.
#include <future>
#include <latch>

#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

/// What holds wherever it was cancelled but while keeping.
void expect_cancelled(report& found, stage& here, const request_ref& asked) {
  here.expect_outcome(asked, outcome::kind::cancelled);
  const trace its = here.of(asked);
  found.expect_time(its.at("ui") - asked->cancelled_at(), 0ms, 20ms, "to be told it is cancelled");
  found.expect(its.find("ui")->thread == "ui", "the user was told on another thread");
  found.expect(!its.has("received"), "what was cancelled was received");
  here.expect_kept_nowhere(asked->key());
  here.its().cancel(asked);  // of no effect: it is over
  const trace later = here.of(asked);
  found.expect(later.events().size() == its.events().size() + 1 && later.count("ui") == 1,
               "something happened after the end");
}

void before_its_start(report& found) {
  stage here(found, {.cpu = 1});
  std::latch cancelled(1);
  here.its().cpu().post([&] { cancelled.wait(); });  // the only thread has something to do
  const request_ref asked = here.ask("early", {});
  here.its().cancel(asked);
  cancelled.count_down();
  expect_cancelled(found, here, asked);
  found.expect(!here.of(asked).has("mem_get") && !here.of(asked).has("disk_get"),
               "a cache was asked for what was cancelled before");
}

void at_the_caches(report& found) {
  stage here(found);
  const request_ref asked =
      here.ask("caches", {.server = nowhere(), .mem_get = 100ms, .disk_get = 100ms});
  await_event(here.log(), "caches", "disk_get");
  await_event(here.log(), "caches", "mem_get");
  here.its().cancel(asked);
  expect_cancelled(found, here, asked);
  found.expect(!here.of(asked).has("connect"), "the network was asked");
}

void while_connecting(report& found) {
  const own_server server({.accept_hangs = true});
  stage here(found);
  const std::size_t before = count_descriptors();
  const request_ref asked = here.ask("connecting", {.server = server.where()});
  await_event(here.log(), "connecting", "connect");
  motet::sleep_for(20ms);
  found.expect(!here.of(asked).has("sent"), "it was connected to who does not accept");
  here.its().cancel(asked);
  expect_cancelled(found, here, asked);
  found.expect(count_descriptors() == before, "the socket was not closed");
}

void while_awaiting_the_reply(report& found) {
  const own_server server({.reply_hangs = true});
  stage here(found);
  const request_ref asked = here.ask("reply", {.server = server.where()});
  await_event(here.log(), "reply", "sent");
  while (server.its().requests() == 0) motet::sleep_for(500us);
  here.its().cancel(asked);
  expect_cancelled(found, here, asked);
  while (server.its().closed() == 0) motet::sleep_for(500us);
  found.expect_time(steady::now() - asked->cancelled_at(), 0ms, 50ms, "the server to notice");
}

}  // namespace

void check_cancel(report& found) {
  before_its_start(found);
  at_the_caches(found);
  while_connecting(found);
  while_awaiting_the_reply(found);
}

void check_cancel_while_keeping(report& found) {
  const own_server server;
  stage here(found);
  const plan how{.server = server.where(), .mem_set = 100ms, .disk_set = 200ms};
  const request_ref asked = here.ask("kept", how);
  const auto received = await_event(here.log(), "kept", "received");
  motet::sleep_until(received + 50ms);
  here.its().cancel(asked);
  here.expect_outcome(asked, outcome::kind::cancelled);

  const trace its = here.of(asked);
  found.expect(
      its.finish_of("mem_set").outcome == "kept" && its.finish_of("disk_set").outcome == "kept",
      "a cache was kept from keeping it");
  found.expect_time(its.at("ui") - received, 200ms, 290ms, "to keep it in both caches");
  found.expect(its.at("ui") >= its.finish_of("disk_set").at, "the user was told before");
  here.expect_kept("kept");

  const request_ref again = here.ask("kept", {.server = server.where()});
  here.expect_value(again);
  found.expect(!here.of(again).has("connect"), "what was kept was fetched again");
}

}  // namespace cached_fetch
