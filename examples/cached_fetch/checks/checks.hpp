// SPDX-License-Identifier: MIT
// The checks, by their names; each plays its situations in a house of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "../events.hpp"
#include "../house.hpp"
#include "../report.hpp"

namespace cached_fetch {

/// A house, a directory and a log for one situation, in which nothing may be left alive at the end,
/// and nobody may be told twice or on another thread.
class stage {
 public:
  explicit stage(report& found, size_of_house size = {});
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage();

  event_log& log() { return log_; }
  house& its() { return house_; }
  fetcher& fetch() { return house_.fetch(); }
  const std::filesystem::path& directory() const { return directory_.path(); }

  request_ref ask(const std::string& key, const plan& how) {
    ++asked_[key];
    return house_.ask(key, how);
  }
  /// The same on the user interface's thread.
  request_ref post(const std::string& key, const plan& how) {
    ++asked_[key];
    return fetch().handle_key(key, how);
  }
  /// Asks, and waits for what comes of it.
  outcome get(const std::string& key, const plan& how) { return ask(key, how)->await(); }

  /// Expects that neither cache has it, or both.
  void expect_kept_nowhere(const std::string& key);
  void expect_kept(const std::string& key);
  void expect_value(const request_ref& asked);
  void expect_outcome(const request_ref& asked, outcome::kind how, std::string_view reason = {});
  trace of(const request_ref& asked) const { return {log_, asked->key(), asked->asked_at()}; }

 private:
  report& found_;
  temporary_directory directory_;
  event_log log_;
  std::map<std::string, int> asked_;
  house house_;
};

void check_cold_and_warm(report& found);         // C1
void check_first_hit(report& found);             // C2
void check_stalled_caches(report& found);        // C3
void check_cancel(report& found);                // C4
void check_cancel_while_keeping(report& found);  // C5
void check_network_limit(report& found);         // C6
void check_overall_limit(report& found);         // C7
void check_errors(report& found);                // C8
void check_crowd(report& found, int requests);   // C9

/// C10.
void check_chaos(report& found, std::chrono::seconds length, std::uint64_t seed);

}  // namespace cached_fetch
