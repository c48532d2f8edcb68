// SPDX-License-Identifier: MIT
#include "story.hpp"

#include <iostream>

#include "checks/checks.hpp"
#include "checks/run.hpp"
#include "summary.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

void play(report& findings, std::ostream& events, std::string& summary) {
  const own_server server({.reply_after = 60ms});
  const own_server silent_server({.reply_hangs = true});
  stage scene(findings);
  const plan course{.server = server.where(),
                    .mem_get = 10ms,
                    .mem_set = 20ms,
                    .disk_get = 35ms,
                    .disk_set = 70ms};
  plan silence = course;
  silence.server = silent_server.where();
  silence.network = 150ms;
  plan hurry = course;
  hurry.overall = 150ms;

  std::vector<question_ref> wishes;
  const auto ask = [&](const std::string& key, const plan& chosen_course) {
    return wishes.emplace_back(scene.ask(key, chosen_course));
  };
  // Copies: the vector grows.
  const question_ref apple = ask("apple", course);
  motet::sleep_for(15ms);
  const question_ref bread = ask("bread", course);
  const question_ref cherry = ask("cherry", silence);
  motet::sleep_for(15ms);
  const question_ref dates = ask("dates", hurry);

  const auto store_time = await_event(scene.log(), "apple", "disk_set");
  await_event(scene.log(), "bread", "received");
  motet::sleep_for(15ms);
  scene.home().cancel(bread);  // while its value is being stored
  motet::sleep_until(store_time + 55ms);
  scene.home().ui().loop().stall(35ms);  // the outcome has to wait for the user
  scene.expect_value(apple);
  const question_ref repeat = ask("apple", course);
  const question_ref eggs = ask("eggs", course);
  await_event(scene.log(), "eggs", "sent");
  motet::sleep_for(20ms);
  scene.home().cancel(eggs);

  scene.expect_value(repeat);
  findings.expect(!scene.trace_of(repeat).has("connect"), "what was kept was fetched again");
  scene.expect_outcome(bread, outcome::kind::cancelled);
  scene.expect_kept("bread");
  scene.expect_outcome(cherry, outcome::kind::timed_out_network);
  scene.expect_kept_nowhere("cherry");
  scene.expect_outcome(dates, outcome::kind::timed_out_overall);
  scene.expect_outcome(eggs, outcome::kind::cancelled);
  scene.expect_kept_nowhere("eggs");

  std::vector<outcome> outcomes;
  for (const question_ref& wish : wishes) outcomes.push_back(wish->await());
  scene.home().cpu().drain();
  write_events(events, scene.log());
  summary = summarize(scene.home(), outcomes);
}

}  // namespace

bool play_story(std::ostream& events) {
  report findings(1);
  std::string summary;
  play_whole(findings, [&] { play(findings, events, summary); });
  std::cout << summary << std::flush;
  for (const std::string& line : findings.broken()) std::cerr << "BROKEN: " << line << '\n';
  return findings.broken().empty();
}

}  // namespace fetch_test
