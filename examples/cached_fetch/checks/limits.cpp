// SPDX-License-Identifier: MIT
// C6 and C7: two time limits, one in the other; the user is told which of them it was.
#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

void check_network_limit(report& found) {
  const own_server server({.reply_hangs = true});
  stage here(found);
  const request_ref asked =
      here.ask("slow", {.server = server.where(), .overall = 1000ms, .network = 500ms});
  here.expect_outcome(asked, outcome::kind::timed_out_network);
  found.expect_time(here.of(asked).at("ui") - asked->asked_at(), 500ms, 540ms, "the limit");
  const auto told = steady::now();
  while (server.its().closed() == 0 && steady::now() < told + 5s) motet::sleep_for(500us);
  found.expect(server.its().closed() == 1, "the connection was not closed");
  here.expect_kept_nowhere("slow");
}

void check_overall_limit(report& found) {
  const own_server hanging({.reply_hangs = true});
  const own_server server({.reply_after = 20ms});
  stage here(found);

  const request_ref reply = here.ask("reply", {.server = hanging.where(), .overall = 300ms});
  const request_ref gets = here.ask(
      "gets", {.server = server.where(), .overall = 300ms, .mem_get = 400ms, .disk_get = 400ms});
  for (const request_ref& each : {reply, gets}) {
    here.expect_outcome(each, outcome::kind::timed_out_overall);
    found.expect_time(here.of(each).at("ui") - each->asked_at(), 300ms, 340ms, "the limit");
    here.expect_kept_nowhere(each->key());
  }
  found.expect(here.of(reply).has("sent"), "the network was not asked");
  found.expect(!here.of(gets).has("connect"), "the network was asked");

  const request_ref sets = here.ask(
      "sets", {.server = server.where(), .overall = 300ms, .mem_set = 400ms, .disk_set = 400ms});
  here.expect_outcome(sets, outcome::kind::timed_out_overall);
  found.expect_time(here.of(sets).at("ui") - sets->asked_at(), 420ms, 470ms,
                    "the limit, and what "
                    "must not be left half done");
  here.expect_kept("sets");
}

}  // namespace cached_fetch
