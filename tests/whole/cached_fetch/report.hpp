// SPDX-License-Identifier: MIT
// The expectations and findings of a check.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "events.hpp"

namespace fetch_test {

class report {
 public:
  using span = std::chrono::nanoseconds;

  /// Multiplies upper bounds of times by `slack`. A program that is watched, by a sanitizer, has
  /// less to do.
  explicit report(double slack, bool watched = false) : slack_(slack), watched_(watched) {}

  /// Expects what holds on the slowest machine.
  bool expect(bool holds, const std::string& text) {
    if (!holds) breaches_.push_back(text);
    return holds;
  }

  /// Expects a length of time. If it is too short, that is an error; if too long, perhaps a busy
  /// machine.
  void expect_time(span length, span minimum, span maximum, const std::string& text) {
    const auto limit = std::chrono::duration<double, std::nano>(maximum) * slack_;
    if (length < minimum) breaches_.push_back(text + ": only " + in_ms(length));
    if (length > limit) {
      delays_.push_back(text + ": " + in_ms(length) + ", more than " + in_ms(maximum) +
                        " times slack");
    }
  }

  const std::vector<std::string>& broken() const { return breaches_; }
  const std::vector<std::string>& late() const { return delays_; }
  bool watched() const { return watched_; }

  void remark(const std::string& text) { remarks_.push_back(text); }
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  static std::string in_ms(span length) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(length).count();
    return std::to_string(us / 1000) + "." + std::to_string(std::abs(us) % 1000 / 100) + " ms";
  }

  double slack_;
  bool watched_;
  std::vector<std::string> breaches_;
  std::vector<std::string> delays_;
  std::vector<std::string> remarks_;
};

/// The events of one key, from a time on.
class trace {
 public:
  trace() = default;
  trace(const event_log& log, const std::string& key, steady::time_point begin = {});

  void add(event entry) { events_.push_back(std::move(entry)); }

  bool has(std::string_view kind) const { return find(kind) != nullptr; }
  std::size_t count(std::string_view kind) const;
  /// Returns: the first event of a kind; null if there is none.
  const event* find(std::string_view kind) const;
  const event* find_last(std::string_view kind) const;
  /// Returns: the time of the first event of a kind.
  /// Throws: std::runtime_error if there is none.
  steady::time_point time_of(std::string_view kind) const;
  /// Returns: the start, or the finish, of the fiber that had the first event of a kind.
  /// Throws: as time_of().
  const event& start_of(std::string_view kind) const { return edge_of(kind, "start"); }
  const event& finish_of(std::string_view kind) const { return edge_of(kind, "finish"); }
  /// Returns: the first finish with that outcome.
  /// Throws: as time_of().
  const event& finish_as(std::string_view outcome) const;
  const std::vector<event>& events() const { return events_; }

 private:
  const event& edge_of(std::string_view kind, std::string_view edge) const;
  std::vector<event> events_;
};

/// Returns: the events of a log, by keys.
std::map<std::string, trace> by_keys(const event_log& log);

/// Waits until the log has an event so many times.
/// Returns: the time of the last one.
/// Switchpoint.
/// Throws: std::runtime_error when that takes too long.
steady::time_point await_event(const event_log& log, const std::string& key, const char* kind,
                               std::size_t count = 1);

}  // namespace fetch_test
