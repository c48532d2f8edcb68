// SPDX-License-Identifier: MIT
// The checks. Each plays its situations in a house of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "../events.hpp"
#include "../house.hpp"
#include "../report.hpp"

namespace fetch_test {

/// A house, a directory and a log for one situation. At its end no fiber may be alive, and the user
/// must have seen every request once, on the user's own thread.
class stage {
 public:
  explicit stage(report& findings, size_of_house size = {});
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage();

  event_log& log() { return log_; }
  house& home() { return house_; }
  observed_fetcher& fetch() { return house_.fetch(); }
  const std::filesystem::path& directory() const { return directory_.path(); }

  question_ref ask(const std::string& key, const plan& course) {
    ++counts_[key];
    return house_.ask(key, course);
  }
  /// The same on the user interface's thread.
  question_ref post(const std::string& key, const plan& course) {
    ++counts_[key];
    return fetch().handle_key(key, course);
  }
  /// Asks, and waits for the outcome.
  outcome get(const std::string& key, const plan& course) { return ask(key, course)->await(); }

  /// Expect that neither cache has the value, or both.
  void expect_kept_nowhere(const std::string& key);
  void expect_kept(const std::string& key);
  void expect_value(const question_ref& wish);
  void expect_outcome(const question_ref& wish, outcome::kind end, std::string_view reason = {});
  trace trace_of(const question_ref& wish) const { return {log_, wish->key(), wish->begin_time()}; }

 private:
  report& findings_;
  temporary_directory directory_;
  event_log log_;
  std::map<std::string, int> counts_;
  house house_;
};

/// The longest that a fiber of C9 may run without a switch.
constexpr milliseconds longest_run{20};

void check_cold_and_warm(report& findings);         // C1
void check_first_hit(report& findings);             // C2
void check_stalled_caches(report& findings);        // C3
void check_cancel(report& findings);                // C4
void check_cancel_while_keeping(report& findings);  // C5
void check_network_limit(report& findings);         // C6
void check_overall_limit(report& findings);         // C7
void check_errors(report& findings);                // C8
void check_crowd(report& findings, int requests);   // C9

/// C10.
void check_chaos(report& findings, std::chrono::seconds length, std::uint64_t seed);

}  // namespace fetch_test
