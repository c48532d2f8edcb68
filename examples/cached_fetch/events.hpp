// SPDX-License-Identifier: MIT
// What happened, when, on which thread, in which fiber: a line of JSON each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace cached_fetch {

using steady = std::chrono::steady_clock;

struct event {
  steady::time_point at{};
  std::string thread{};
  std::uint64_t fiber = 0;  // 0: no fiber, or one that has not started
  const char* what = "";    // start, mem_get, disk_get, connect, sent, received, mem_set, disk_set,
                            // ui, cancel_req, finish
  std::string key{};
  std::string outcome{};     // of a finish
  std::uint64_t parent = 0;  // of a start: the fiber that this one works for
};

/// Takes events from any thread, in the order in which they come, and never waits: a fiber that
/// held its thread up for the log would spoil what the log is to show.
class event_log {
 public:
  event_log() = default;
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;
  ~event_log();

  /// A log that is off takes nothing.
  void turn_off() { on_ = false; }
  bool is_on() const { return on_; }

  /// Adds an event of the running fiber, here and now.
  void add(const char* what, std::string_view key, std::string_view outcome = {},
           std::uint64_t parent = 0);
  /// Adds one of a thread that runs no fiber.
  void add_for(std::uint64_t fiber, const char* what, std::string_view key);

  /// Returns: all that has been added before, the oldest first.
  std::vector<event> all() const;
  steady::time_point begun() const { return begun_; }

 private:
  struct node;
  void push(event&& what);

  std::atomic<node*> newest_{nullptr};
  const steady::time_point begun_ = steady::now();
  bool on_ = true;
};

/// Writes a text as JSON has it.
void write_text(std::ostream& out, std::string_view text);

/// Writes a line for each.
void write_events(std::ostream& out, const event_log& log);

/// The life of the running fiber in the log, from its start to its finish.
class logged_life {
 public:
  logged_life(event_log& log, std::string_view key, std::uint64_t parent = 0);
  logged_life(const logged_life&) = delete;
  logged_life& operator=(const logged_life&) = delete;
  ~logged_life();

  void ends_as(std::string outcome) { outcome_ = std::move(outcome); }

 private:
  event_log& log_;
  std::string_view key_;
  std::string outcome_ = "cancelled";  // unless it comes to say otherwise
};

}  // namespace cached_fetch
