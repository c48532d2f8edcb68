// SPDX-License-Identifier: MIT
// C1: what no cache has comes from the network, once, and is then in both.
#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

/// Each of the two fibers has started before the other has finished.
bool overlap(const trace& its, std::string_view one, std::string_view other) {
  return its.start_of(one).at <= its.finish_of(other).at &&
         its.start_of(other).at <= its.finish_of(one).at;
}

void expect_order(report& found, const trace& its) {
  found.expect(overlap(its, "mem_get", "disk_get"), "the caches were not asked at once");
  found.expect(its.finish_of("mem_get").at <= its.at("connect") &&
                   its.finish_of("disk_get").at <= its.at("connect"),
               "the network was asked before both caches had answered");
  found.expect(its.at("connect") <= its.at("sent") && its.at("sent") <= its.at("received"),
               "the network was not connected to, asked and listened to in this order");
  found.expect(its.at("received") <= its.at("mem_set") && its.at("received") <= its.at("disk_set"),
               "something was kept before it was there");
  found.expect(overlap(its, "mem_set", "disk_set"), "it was not kept in both caches at once");
  found.expect(
      its.finish_of("mem_set").at <= its.at("ui") && its.finish_of("disk_set").at <= its.at("ui"),
      "the user was told before it was kept");
  found.expect(its.find("ui")->thread == "ui", "the user was told on another thread");
  found.expect(its.find("connect")->thread.starts_with("net") &&
                   its.find("received")->thread.starts_with("net"),
               "a socket was used on another thread than the network's");
  for (const char* each : {"mem_get", "disk_get", "mem_set", "disk_set"}) {
    found.expect(its.find(each)->thread.starts_with("cpu"), "a cache was used elsewhere");
  }
}

}  // namespace

void check_cold_and_warm(report& found) {
  const own_server server({.reply_after = 20ms});
  stage here(found);
  const plan how{
      .server = server.where(), .mem_get = 2ms, .mem_set = 2ms, .disk_get = 2ms, .disk_set = 2ms};

  const request_ref cold = here.ask("hello", how);
  here.expect_value(cold);
  const trace first = here.of(cold);
  expect_order(found, first);
  found.expect_time(first.at("ui") - cold->asked_at(), 20ms, 60ms, "the first answer");
  here.expect_kept("hello");

  const request_ref warm = here.ask("hello", how);
  here.expect_value(warm);
  const trace second = here.of(warm);
  found.expect(!second.has("connect"), "what was kept was fetched again");
  found.expect_time(second.at("ui") - warm->asked_at(), 0ms, 10ms, "the second answer");

  // Another house in which only the directory is the same.
  event_log log;
  house next_day({}, here.directory(), log);
  const request_ref again = next_day.ask("hello", how);
  found.expect(again->await().text == "hello world!", "the directory has lost it");
  found.expect(!trace(log, "hello").has("connect"), "what was on disk was fetched again");
  found.expect(server.its().requests() == 1, "the server was asked more than once");
}

}  // namespace cached_fetch
