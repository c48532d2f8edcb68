// SPDX-License-Identifier: MIT
// C2: the first cache with the value ends the search; a cache without the value ends nothing.
#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

void only_in_memory(report& findings, stage& scene, plan course) {
  scene.fetch().put_into_memory("m", "m world!");
  course.mem_get = 5ms;
  course.disk_get = 300ms;
  const question_ref wish = scene.ask("m", course);
  scene.expect_value(wish);
  const trace story = scene.trace_of(wish);
  findings.expect_time(story.time_of("ui") - wish->begin_time(), 0ms, 30ms, "a hit in memory");
  findings.expect(story.finish_of("mem_get").outcome == "hit", "the memory did not hit");
  const event& loser = story.finish_as("cancelled");  // perhaps on its way to the disk
  findings.expect(story.count("start") == 3, "not both caches were asked");
  findings.expect(loser.time <= story.time_of("ui"), "the loser was not waited for");
  findings.expect_time(loser.time - wish->begin_time(), 0ms, 50ms, "the end of the loser");
  findings.expect(!story.has("connect"), "a hit was fetched");
}

/// Nothing interrupts a thread that sleeps, so the hit has to wait for the loser.
void loser_that_blocks(report& findings, stage& scene, plan course) {
  scene.fetch().put_into_memory("b", "b world!");
  course.disk_get = 60ms;
  course.disk_blocks = true;
  const question_ref wish = scene.ask("b", course);
  scene.expect_value(wish);
  const trace story = scene.trace_of(wish);
  if (story.has("disk_get")) {
    findings.expect_time(story.time_of("ui") - wish->begin_time(), 60ms, 120ms,
                         "a hit beside a blocked disk");
    findings.expect(story.finish_of("disk_get").time <= story.time_of("ui"),
                    "the loser was not waited for");
  }
}

void only_on_disk(report& findings, stage& scene, plan course) {
  scene.fetch().put_onto_disk("d", "d world!");
  course.disk_get = 50ms;
  const question_ref wish = scene.ask("d", course);
  scene.expect_value(wish);
  const trace story = scene.trace_of(wish);
  findings.expect_time(story.time_of("ui") - wish->begin_time(), 50ms, 80ms, "a hit on disk");
  findings.expect(story.finish_of("mem_get").outcome == "miss", "the memory did not miss");
  findings.expect(story.finish_of("disk_get").outcome == "hit",
                  "the early miss has ended the race");
  findings.expect(!story.has("connect"), "a hit was fetched");
}

void nowhere_to_be_found(report& findings, stage& scene, plan course) {
  course.mem_get = 30ms;
  course.disk_get = 80ms;
  const question_ref wish = scene.ask("n", course);
  scene.expect_value(wish);
  const trace story = scene.trace_of(wish);
  findings.expect_time(story.time_of("connect") - wish->begin_time(), 80ms, 110ms,
                       "the way to the network");
  scene.expect_kept("n");
}

/// A cache that fails has no value.
void broken_memory(report& findings, stage& scene, plan course) {
  scene.fetch().put_onto_disk("r", "r world!");
  course.mem_is_broken = true;
  course.disk_get = 10ms;
  const question_ref wish = scene.ask("r", course);
  scene.expect_value(wish);
  findings.expect(scene.trace_of(wish).finish_of("mem_get").outcome == "failed",
                  "no failure was noted");
  findings.expect(scene.fetch().counts().get_failures == 1, "a failed get was not counted");
}

}  // namespace

void check_first_hit(report& findings) {
  const own_server server;
  stage scene(findings);
  const plan course{.server = server.where()};
  only_in_memory(findings, scene, course);
  loser_that_blocks(findings, scene, course);
  only_on_disk(findings, scene, course);
  nowhere_to_be_found(findings, scene, course);
  broken_memory(findings, scene, course);
}

}  // namespace fetch_test
