// SPDX-License-Identifier: MIT
// A request of a check: it can be cancelled, and its outcome awaited.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <motet/motet.hpp>
#include <stop_token>
#include <string>
#include <utility>

#include "events.hpp"
#include "plan.hpp"

namespace fetch_test {

/// Any thread.
class question {
 public:
  question(std::string key, const plan& course, event_log& log)
      : key_(std::move(key)), course_(course), log_(log) {}

  const std::string& key() const { return key_; }
  steady::time_point begin_time() const { return begin_time_; }
  /// Returns: when cancel() was called.
  steady::time_point cancel_time() const { return cancel_time_; }

  /// Never waits; may be called before the request starts, and after its end.
  void cancel() {
    cancel_time_ = steady::now();
    log_.add_for(fiber_, "cancel_req", key_);
    stop_.request_stop();
  }

  /// Waits for the end of the request's fiber.
  /// Switchpoint.
  const outcome& await() const { return result_.get(); }
  bool is_over() const { return result_.ready(); }

 private:
  friend class observed_fetcher;

  const std::string key_;
  const plan course_;
  event_log& log_;
  const steady::time_point begin_time_ = steady::now();
  std::atomic<steady::time_point> cancel_time_{};
  std::atomic<std::uint64_t> fiber_{0};
  std::stop_source stop_;
  motet::promise<outcome> promise_;
  motet::future<outcome> result_ = promise_.get_future();
};

using question_ref = std::shared_ptr<question>;

}  // namespace fetch_test
