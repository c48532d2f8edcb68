// SPDX-License-Identifier: MIT
// C2: the first cache that has it ends the search; one that has it not ends nothing.
#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

void only_in_memory(report& found, stage& here, plan how) {
  here.fetch().put_into_memory("m", "m world!");
  how.mem_get = 5ms;
  how.disk_get = 300ms;
  const request_ref asked = here.ask("m", how);
  here.expect_value(asked);
  const trace its = here.of(asked);
  found.expect_time(its.at("ui") - asked->asked_at(), 0ms, 30ms, "a hit in memory");
  found.expect(its.finish_of("mem_get").outcome == "hit", "the memory did not hit");
  const event& loser = its.finish_as("cancelled");  // perhaps on its way to the disk
  found.expect(its.count("start") == 3, "not both caches were asked");
  found.expect(loser.at <= its.at("ui"), "the loser was not waited for");
  found.expect_time(loser.at - asked->asked_at(), 0ms, 50ms, "the end of the loser");
  found.expect(!its.has("connect"), "a hit was fetched");
}

/// A thread that sleeps cannot be told to stop, so the hit has to wait for the loser.
void loser_that_blocks(report& found, stage& here, plan how) {
  here.fetch().put_into_memory("b", "b world!");
  how.disk_get = 60ms;
  how.disk_blocks = true;
  const request_ref asked = here.ask("b", how);
  here.expect_value(asked);
  const trace its = here.of(asked);
  if (its.has("disk_get")) {
    found.expect_time(its.at("ui") - asked->asked_at(), 60ms, 120ms, "a hit beside a blocked disk");
    found.expect(its.finish_of("disk_get").at <= its.at("ui"), "the loser was not waited for");
  }
}

void only_on_disk(report& found, stage& here, plan how) {
  here.fetch().put_onto_disk("d", "d world!");
  how.disk_get = 50ms;
  const request_ref asked = here.ask("d", how);
  here.expect_value(asked);
  const trace its = here.of(asked);
  found.expect_time(its.at("ui") - asked->asked_at(), 50ms, 80ms, "a hit on disk");
  found.expect(its.finish_of("mem_get").outcome == "miss", "the memory did not miss");
  found.expect(its.finish_of("disk_get").outcome == "hit", "the early miss has ended the race");
  found.expect(!its.has("connect"), "a hit was fetched");
}

void nowhere_to_be_found(report& found, stage& here, plan how) {
  how.mem_get = 30ms;
  how.disk_get = 80ms;
  const request_ref asked = here.ask("n", how);
  here.expect_value(asked);
  const trace its = here.of(asked);
  found.expect_time(its.at("connect") - asked->asked_at(), 80ms, 110ms, "the way to the network");
  here.expect_kept("n");
}

/// A cache whose get fails is one that has it not.
void broken_memory(report& found, stage& here, plan how) {
  here.fetch().put_onto_disk("r", "r world!");
  how.mem_is_broken = true;
  how.disk_get = 10ms;
  const request_ref asked = here.ask("r", how);
  here.expect_value(asked);
  found.expect(here.of(asked).finish_of("mem_get").outcome == "failed", "no failure was noted");
  found.expect(here.fetch().seen().get_failures == 1, "a failed get was not counted");
}

}  // namespace

void check_first_hit(report& found) {
  const own_server server;
  stage here(found);
  const plan how{.server = server.where()};
  only_in_memory(found, here, how);
  loser_that_blocks(found, here, how);
  only_on_disk(found, here, how);
  nowhere_to_be_found(found, here, how);
  broken_memory(found, here, how);
}

}  // namespace cached_fetch
