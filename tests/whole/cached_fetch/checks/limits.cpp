// SPDX-License-Identifier: MIT
// C6 and C7: two nested time limits; the user sees which of them has expired.
#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

void check_network_limit(report& findings) {
  const own_server server({.reply_hangs = true});
  stage scene(findings);
  const question_ref wish =
      scene.ask("slow", {.server = server.where(), .overall = 1000ms, .network = 500ms});
  scene.expect_outcome(wish, outcome::kind::timed_out_network);
  findings.expect_time(scene.trace_of(wish).time_of("ui") - wish->begin_time(), 500ms, 540ms,
                       "the limit");
  const auto answer_time = steady::now();
  while (server.state().closed() == 0 && steady::now() < answer_time + 5s) motet::sleep_for(500us);
  findings.expect(server.state().closed() == 1, "the connection was not closed");
  scene.expect_kept_nowhere("slow");
}

void check_overall_limit(report& findings) {
  const own_server silent_server({.reply_hangs = true});
  const own_server server({.reply_after = 20ms});
  stage scene(findings);

  const question_ref reply =
      scene.ask("reply", {.server = silent_server.where(), .overall = 300ms});
  const question_ref gets = scene.ask(
      "gets", {.server = server.where(), .overall = 300ms, .mem_get = 400ms, .disk_get = 400ms});
  for (const question_ref& wish : {reply, gets}) {
    scene.expect_outcome(wish, outcome::kind::timed_out_overall);
    findings.expect_time(scene.trace_of(wish).time_of("ui") - wish->begin_time(), 300ms, 340ms,
                         "the limit");
    scene.expect_kept_nowhere(wish->key());
  }
  findings.expect(scene.trace_of(reply).has("sent"), "the network was not asked");
  findings.expect(!scene.trace_of(gets).has("connect"), "the network was asked");

  const question_ref sets = scene.ask(
      "sets", {.server = server.where(), .overall = 300ms, .mem_set = 400ms, .disk_set = 400ms});
  scene.expect_outcome(sets, outcome::kind::timed_out_overall);
  findings.expect_time(scene.trace_of(sets).time_of("ui") - sets->begin_time(), 420ms, 470ms,
                       "the limit, and what must not be left half done");
  scene.expect_kept("sets");
}

}  // namespace fetch_test
