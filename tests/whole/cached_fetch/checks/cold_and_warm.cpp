// SPDX-License-Identifier: MIT
// C1: a value that no cache has comes from the network, once, and is then in both caches.
#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

/// Returns: whether each of two fibers started before the other one finished.
bool overlap(const trace& story, std::string_view event, std::string_view rival) {
  return story.start_of(event).time <= story.finish_of(rival).time &&
         story.start_of(rival).time <= story.finish_of(event).time;
}

void expect_order(report& findings, const trace& story) {
  findings.expect(overlap(story, "mem_get", "disk_get"), "the caches were not asked at once");
  findings.expect(story.finish_of("mem_get").time <= story.time_of("connect") &&
                      story.finish_of("disk_get").time <= story.time_of("connect"),
                  "the network was asked before both caches had answered");
  findings.expect(story.time_of("connect") <= story.time_of("sent") &&
                      story.time_of("sent") <= story.time_of("received"),
                  "the network was not connected to, asked and listened to in this order");
  findings.expect(story.time_of("received") <= story.time_of("mem_set") &&
                      story.time_of("received") <= story.time_of("disk_set"),
                  "something was kept before it was there");
  findings.expect(overlap(story, "mem_set", "disk_set"), "it was not kept in both caches at once");
  findings.expect(story.finish_of("mem_set").time <= story.time_of("ui") &&
                      story.finish_of("disk_set").time <= story.time_of("ui"),
                  "the user was told before it was kept");
  findings.expect(story.find("ui")->thread == "ui", "the user was told on another thread");
  findings.expect(story.find("connect")->thread.starts_with("net") &&
                      story.find("received")->thread.starts_with("net"),
                  "a socket was used on another thread than the network's");
  for (const char* kind : {"mem_get", "disk_get", "mem_set", "disk_set"}) {
    findings.expect(story.find(kind)->thread.starts_with("cpu"), "a cache was used elsewhere");
  }
}

}  // namespace

void check_cold_and_warm(report& findings) {
  const own_server server({.reply_after = 20ms});
  stage scene(findings);
  const plan course{
      .server = server.where(), .mem_get = 2ms, .mem_set = 2ms, .disk_get = 2ms, .disk_set = 2ms};

  const question_ref cold_wish = scene.ask("hello", course);
  scene.expect_value(cold_wish);
  const trace first_story = scene.trace_of(cold_wish);
  expect_order(findings, first_story);
  findings.expect_time(first_story.time_of("ui") - cold_wish->begin_time(), 20ms, 60ms,
                       "the first answer");
  scene.expect_kept("hello");

  const question_ref warm_wish = scene.ask("hello", course);
  scene.expect_value(warm_wish);
  const trace second_story = scene.trace_of(warm_wish);
  findings.expect(!second_story.has("connect"), "what was kept was fetched again");
  findings.expect_time(second_story.time_of("ui") - warm_wish->begin_time(), 0ms, 10ms,
                       "the second answer");

  // A second house shares only the directory.
  event_log log;
  house second_house({}, scene.directory(), log);
  const question_ref repeat = second_house.ask("hello", course);
  findings.expect(repeat->await().text == "hello world!", "the directory has lost it");
  findings.expect(!trace(log, "hello").has("connect"), "what was on disk was fetched again");
  findings.expect(server.state().requests() == 1, "the server was asked more than once");
}

}  // namespace fetch_test
