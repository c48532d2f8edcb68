// SPDX-License-Identifier: MIT
// See scenario.hpp. Half a second in the life of a user who asks for several things at once.
#include "scenario.hpp"

#include <iostream>

#include "checks/checks.hpp"
#include "checks/run.hpp"
#include "summary.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

void play(report& found, std::ostream& events, std::string& summary) {
  const own_server server({.reply_after = 60ms});
  const own_server silent({.reply_hangs = true});
  stage here(found);
  const plan how{.server = server.where(),
                 .mem_get = 10ms,
                 .mem_set = 20ms,
                 .disk_get = 35ms,
                 .disk_set = 70ms};
  plan to_silence = how;
  to_silence.server = silent.where();
  to_silence.network = 150ms;
  plan in_no_time = how;
  in_no_time.overall = 150ms;

  std::vector<request_ref> asked;
  const auto ask = [&](const std::string& key, const plan& its) {
    return asked.emplace_back(here.ask(key, its));
  };
  // Copies: the vector grows.
  const request_ref apple = ask("apple", how);
  motet::sleep_for(15ms);
  const request_ref bread = ask("bread", how);
  const request_ref cherry = ask("cherry", to_silence);
  motet::sleep_for(15ms);
  const request_ref dates = ask("dates", in_no_time);

  const auto kept = await_event(here.log(), "apple", "disk_set");
  await_event(here.log(), "bread", "received");
  motet::sleep_for(15ms);
  here.its().cancel(bread);  // while it is being kept
  motet::sleep_until(kept + 55ms);
  here.its().ui().loop().stall(35ms);  // the answer has to wait for its user
  here.expect_value(apple);
  const request_ref again = ask("apple", how);
  const request_ref eggs = ask("eggs", how);
  await_event(here.log(), "eggs", "sent");
  motet::sleep_for(20ms);
  here.its().cancel(eggs);

  here.expect_value(again);
  found.expect(!here.of(again).has("connect"), "what was kept was fetched again");
  here.expect_outcome(bread, outcome::kind::cancelled);
  here.expect_kept("bread");
  here.expect_outcome(cherry, outcome::kind::timed_out_network);
  here.expect_kept_nowhere("cherry");
  here.expect_outcome(dates, outcome::kind::timed_out_overall);
  here.expect_outcome(eggs, outcome::kind::cancelled);
  here.expect_kept_nowhere("eggs");

  std::vector<outcome> outcomes;
  for (const request_ref& each : asked) outcomes.push_back(each->await());
  here.its().cpu().drain();
  write_events(events, here.log());
  summary = summarize(here.its(), outcomes);
}

}  // namespace

bool play_scenario(std::ostream& events) {
  report found(1);
  std::string summary;
  play_whole(found, [&] { play(found, events, summary); });
  std::cout << summary << std::flush;
  for (const std::string& each : found.broken()) std::cerr << "BROKEN: " << each << '\n';
  return found.broken().empty();
}

}  // namespace cached_fetch
