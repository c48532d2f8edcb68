// SPDX-License-Identifier: MIT
// A log of events with their times, threads and fibers, written as a line of JSON for each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fetch_test {

using steady = std::chrono::steady_clock;

struct event {
  steady::time_point time{};
  std::string thread{};
  std::uint64_t fiber = 0;  // 0: none, or a fiber that has not started
  const char* kind = "";    // start, mem_get, disk_get, connect, sent, received, mem_set, disk_set,
                            // ui, cancel_req, finish
  std::string key{};
  std::string outcome{};     // of a finish
  std::uint64_t parent = 0;  // of a start: the fiber of the request
};

/// Takes events from any thread, in order, and never waits: a wait would distort the times in the
/// log.
class event_log {
 public:
  event_log() = default;
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;
  ~event_log();

  /// Adds an event of the running fiber.
  void add(const char* kind, std::string_view key, std::string_view outcome = {},
           std::uint64_t parent = 0);
  /// Adds an event of a thread that runs no fiber.
  void add_for(std::uint64_t fiber, const char* kind, std::string_view key);

  /// Returns: all events so far, the oldest first.
  std::vector<event> events() const;
  steady::time_point begin_time() const { return begin_time_; }

 private:
  struct node;
  void push(event&& entry);

  std::atomic<node*> newest_{nullptr};
  const steady::time_point begin_time_ = steady::now();
};

/// Writes a text as a string of JSON.
void write_text(std::ostream& out, std::string_view text);

/// Writes a line for each event.
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
  std::string outcome_ = "cancelled";  // unless ends_as() is called
};

}  // namespace fetch_test
