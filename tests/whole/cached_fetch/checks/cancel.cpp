// SPDX-License-Identifier: MIT
// C4 and C5: a request is cancelled before its start, at each of its waits, and while its value is
// being stored.
#include <algorithm>
#include <filesystem>
#include <future>
#include <latch>
#include <string>
#include <system_error>

#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

/// Of all descriptors of this process; a thread that installs the guards of its stacks has another
/// one for a moment.
std::ptrdiff_t count_sockets() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::count_if(begin(descriptors), end(descriptors), [](const auto& entry) {
    std::error_code closed_meanwhile;
    return read_symlink(entry.path(), closed_meanwhile).string().starts_with("socket:");
  });
}

/// Expects what holds for every cancellation but one while the value is being stored.
void expect_cancelled(report& findings, stage& scene, const question_ref& wish) {
  scene.expect_outcome(wish, outcome::kind::cancelled);
  const trace story = scene.trace_of(wish);
  findings.expect_time(story.time_of("ui") - wish->cancel_time(), 0ms, 20ms,
                       "to be told it is cancelled");
  findings.expect(story.find("ui")->thread == "ui", "the user was told on another thread");
  findings.expect(!story.has("received"), "what was cancelled was received");
  scene.expect_kept_nowhere(wish->key());
  scene.home().cancel(wish);  // no effect: the request is over
  const trace sequel = scene.trace_of(wish);
  findings.expect(sequel.events().size() == story.events().size() + 1 && sequel.count("ui") == 1,
                  "something happened after the end");
}

void before_its_start(report& findings) {
  stage scene(findings, {.cpu = 1});
  std::latch cancellation(1);
  scene.home().cpu().post([&] { cancellation.wait(); });  // occupies the only thread
  const question_ref wish = scene.ask("early", {});
  scene.home().cancel(wish);
  cancellation.count_down();
  expect_cancelled(findings, scene, wish);
  findings.expect(!scene.trace_of(wish).has("mem_get") && !scene.trace_of(wish).has("disk_get"),
                  "a cache was asked for what was cancelled before");
}

void at_the_caches(report& findings) {
  stage scene(findings);
  const question_ref wish =
      scene.ask("caches", {.server = nowhere(), .mem_get = 100ms, .disk_get = 100ms});
  await_event(scene.log(), "caches", "disk_get");
  await_event(scene.log(), "caches", "mem_get");
  scene.home().cancel(wish);
  expect_cancelled(findings, scene, wish);
  findings.expect(!scene.trace_of(wish).has("connect"), "the network was asked");
}

void while_connecting(report& findings) {
  const own_server server({.accept_hangs = true});
  stage scene(findings);
  const std::ptrdiff_t sockets = count_sockets();
  const question_ref wish = scene.ask("connecting", {.server = server.where()});
  await_event(scene.log(), "connecting", "connect");
  motet::sleep_for(20ms);
  findings.expect(!scene.trace_of(wish).has("sent"), "it was connected to who does not accept");
  scene.home().cancel(wish);
  expect_cancelled(findings, scene, wish);
  findings.expect(count_sockets() == sockets, "the socket was not closed");
}

void while_awaiting_the_reply(report& findings) {
  const own_server server({.reply_hangs = true});
  stage scene(findings);
  const question_ref wish = scene.ask("reply", {.server = server.where()});
  await_event(scene.log(), "reply", "sent");
  while (server.state().requests() == 0) motet::sleep_for(500us);
  scene.home().cancel(wish);
  expect_cancelled(findings, scene, wish);
  while (server.state().closed() == 0) motet::sleep_for(500us);
  findings.expect_time(steady::now() - wish->cancel_time(), 0ms, 50ms, "the server to notice");
}

}  // namespace

void check_cancel(report& findings) {
  before_its_start(findings);
  at_the_caches(findings);
  while_connecting(findings);
  while_awaiting_the_reply(findings);
}

void check_cancel_while_keeping(report& findings) {
  const own_server server;
  stage scene(findings);
  const plan course{.server = server.where(), .mem_set = 100ms, .disk_set = 200ms};
  const question_ref wish = scene.ask("kept", course);
  const auto arrival = await_event(scene.log(), "kept", "received");
  motet::sleep_until(arrival + 50ms);
  scene.home().cancel(wish);
  scene.expect_outcome(wish, outcome::kind::cancelled);

  const trace story = scene.trace_of(wish);
  findings.expect(
      story.finish_of("mem_set").outcome == "kept" && story.finish_of("disk_set").outcome == "kept",
      "a cache was kept from keeping it");
  findings.expect_time(story.time_of("ui") - arrival, 200ms, 290ms, "to keep it in both caches");
  findings.expect(story.time_of("ui") >= story.finish_of("disk_set").time,
                  "the user was told before");
  scene.expect_kept("kept");

  const question_ref repeat = scene.ask("kept", {.server = server.where()});
  scene.expect_value(repeat);
  findings.expect(!scene.trace_of(repeat).has("connect"), "what was kept was fetched again");
}

}  // namespace fetch_test
