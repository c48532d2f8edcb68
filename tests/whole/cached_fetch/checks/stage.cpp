// SPDX-License-Identifier: MIT
// The expectations that hold in every situation.
#include <utility>

#include "checks.hpp"

namespace fetch_test {

namespace {

std::string value_of(const std::string& key) {
  return key + " world!";
}

/// Expects that every fiber has started once and finished once.
void expect_whole_lives(report& findings, const event_log& log) {
  std::map<std::uint64_t, int> lives;
  for (const event& entry : log.events()) {
    if (std::string_view(entry.kind) == "start") ++lives[entry.fiber];
    if (std::string_view(entry.kind) == "finish") --lives[entry.fiber];
  }
  for (const auto& [fiber, count] : lives) {
    findings.expect(count == 0, "fiber " + std::to_string(fiber) + " has not started and finished");
  }
}

}  // namespace

stage::stage(report& findings, size_of_house size)
    : findings_(findings), house_(size, directory_.path(), log_) {}

stage::~stage() {
  house_.cpu().drain();
  house_.net().drain();
  for (const std::string& fiber : house_.fibers_alive())
    findings_.expect(false, "lives on: " + fiber);
  const auto news_by_key = house_.ui().present_news();
  for (const auto& [key, count] : counts_) {
    const auto entry = news_by_key.find(key);
    const int answers =
        entry == news_by_key.end() ? 0 : entry->second.results + entry->second.failures;
    findings_.expect(answers == count, key + " was asked for " + std::to_string(count) +
                                           " times, and answered " + std::to_string(answers));
  }
  findings_.expect(house_.ui().strangers() == 0, "the user interface was touched elsewhere");
  expect_whole_lives(findings_, log_);
}

void stage::expect_kept_nowhere(const std::string& key) {
  findings_.expect(!fetch().peek_memory(key), key + " is in memory");
  findings_.expect(!fetch().peek_disk(key), key + " is on disk");
}

void stage::expect_kept(const std::string& key) {
  findings_.expect(fetch().peek_memory(key) == value_of(key), key + " is not in memory");
  findings_.expect(fetch().peek_disk(key) == value_of(key), key + " is not on disk");
}

void stage::expect_value(const question_ref& wish) {
  const outcome& result = wish->await();
  findings_.expect(result.end == outcome::kind::value && result.text == value_of(wish->key()),
                   wish->key() + " ended as " + describe(result));
}

void stage::expect_outcome(const question_ref& wish, outcome::kind end, std::string_view reason) {
  const outcome& result = wish->await();
  findings_.expect(result.end == end && (reason.empty() || result.text == reason),
                   wish->key() + " ended as " + describe(result) + " instead of " + name_of(end) +
                       " " + std::string(reason));
}

}  // namespace fetch_test
