// SPDX-License-Identifier: MIT
// What a check expects and finds.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "events.hpp"

namespace cached_fetch {

class report {
 public:
  using span = std::chrono::nanoseconds;

  /// Upper bounds of times are this many times as large as written.
  /// A program that is watched, by a sanitizer, is given less to do.
  explicit report(double slack, bool watched = false) : slack_(slack), watched_(watched) {}

  /// What has to hold, however slow the machine is.
  bool expect(bool holds, const std::string& what) {
    if (!holds) broken_.push_back(what);
    return holds;
  }

  /// A length of time: that it is too short is an error, too long perhaps the machine's fault.
  void expect_time(span found, span least, span most, const std::string& what) {
    const auto limit = std::chrono::duration<double, std::nano>(most) * slack_;
    if (found < least) broken_.push_back(what + ": only " + in_ms(found));
    if (found > limit) {
      late_.push_back(what + ": " + in_ms(found) + ", more than " + in_ms(most) + " times slack");
    }
  }

  const std::vector<std::string>& broken() const { return broken_; }
  const std::vector<std::string>& late() const { return late_; }
  bool watched() const { return watched_; }

  void remark(const std::string& what) { remarks_.push_back(what); }
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  static std::string in_ms(span length) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(length).count();
    return std::to_string(us / 1000) + "." + std::to_string(std::abs(us) % 1000 / 100) + " ms";
  }

  double slack_;
  bool watched_;
  std::vector<std::string> broken_;
  std::vector<std::string> late_;
  std::vector<std::string> remarks_;
};

/// What the log has of one key, from some time on.
class trace {
 public:
  trace() = default;
  trace(const event_log& log, const std::string& key, steady::time_point since = {});

  void add(event its) { events_.push_back(std::move(its)); }

  bool has(std::string_view what) const { return find(what) != nullptr; }
  std::size_t count(std::string_view what) const;
  /// Returns: the first of the kind; null if there is none.
  const event* find(std::string_view what) const;
  const event* find_last(std::string_view what) const;
  /// Returns: when the first of the kind was.
  /// Throws: std::runtime_error if there is none.
  steady::time_point at(std::string_view what) const;
  /// Returns: the start, or the finish, of the fiber of which `what` is an event.
  /// Throws: as at().
  const event& start_of(std::string_view what) const { return of_fiber_of(what, "start"); }
  const event& finish_of(std::string_view what) const { return of_fiber_of(what, "finish"); }
  /// Returns: the first finish with that outcome.
  /// Throws: as at().
  const event& finish_as(std::string_view outcome) const;
  const std::vector<event>& events() const { return events_; }

 private:
  const event& of_fiber_of(std::string_view what, std::string_view edge) const;
  std::vector<event> events_;
};

/// Returns: what the log has, by keys.
std::map<std::string, trace> by_keys(const event_log& log);

/// Waits until the log has it.
/// Returns: when it was.
/// Switchpoint.
/// Throws: std::runtime_error when that takes too long.
steady::time_point await_event(const event_log& log, const std::string& key, const char* what,
                               std::size_t times = 1);

}  // namespace cached_fetch
