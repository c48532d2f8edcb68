// SPDX-License-Identifier: MIT
// What holds in every situation, whatever happens in it.
#include <utility>

#include "checks.hpp"

namespace cached_fetch {

namespace {

std::string value_of(const std::string& key) {
  return key + " world!";
}

/// Each fiber that has started has finished, once.
void expect_whole_lives(report& found, const event_log& log) {
  std::map<std::uint64_t, int> open;
  for (const event& each : log.all()) {
    if (std::string_view(each.what) == "start") ++open[each.fiber];
    if (std::string_view(each.what) == "finish") --open[each.fiber];
  }
  for (const auto& [fiber, count] : open) {
    found.expect(count == 0, "fiber " + std::to_string(fiber) + " has not started and finished");
  }
}

}  // namespace

stage::stage(report& found, size_of_house size)
    : found_(found), house_(size, directory_.path(), log_) {}

stage::~stage() {
  house_.cpu().drain();
  house_.net().drain();
  for (const std::string& each : house_.fibers_alive()) found_.expect(false, "lives on: " + each);
  const auto told = house_.ui().told();
  for (const auto& [key, times] : asked_) {
    const auto its = told.find(key);
    const int answers = its == told.end() ? 0 : its->second.results + its->second.failures;
    found_.expect(answers == times, key + " was asked for " + std::to_string(times) +
                                        " times, and answered " + std::to_string(answers));
  }
  found_.expect(house_.ui().touched_elsewhere() == 0, "the user interface was touched elsewhere");
  expect_whole_lives(found_, log_);
}

void stage::expect_kept_nowhere(const std::string& key) {
  found_.expect(!fetch().peek_memory(key), key + " is in memory");
  found_.expect(!fetch().peek_disk(key), key + " is on disk");
}

void stage::expect_kept(const std::string& key) {
  found_.expect(fetch().peek_memory(key) == value_of(key), key + " is not in memory");
  found_.expect(fetch().peek_disk(key) == value_of(key), key + " is not on disk");
}

void stage::expect_value(const request_ref& asked) {
  const outcome& how = asked->await();
  found_.expect(how.how == outcome::kind::value && how.text == value_of(asked->key()),
                asked->key() + " ended as " + describe(how));
}

void stage::expect_outcome(const request_ref& asked, outcome::kind how, std::string_view reason) {
  const outcome& found = asked->await();
  found_.expect(found.how == how && (reason.empty() || found.text == reason),
                asked->key() + " ended as " + describe(found) + " instead of " + name_of(how) +
                    " " + std::string(reason));
}

}  // namespace cached_fetch
