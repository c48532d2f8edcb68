// SPDX-License-Identifier: MIT
// The event loop of the example, with a heart that shows whether it stands still.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <motet/base/errors.hpp>
#include <mutex>
#include <thread>
#include <utility>

#include "this_thread.hpp"

namespace fetch_test {

class ui_loop {
 public:
  using steady = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds beat{10};

  ui_loop() : thread_([this] { run(); }) {}
  ui_loop(const ui_loop&) = delete;
  ui_loop& operator=(const ui_loop&) = delete;
  ~ui_loop() { close(); }

  /// Has `f` called by the loop's thread, soon. Any thread.
  /// Throws: motet::executor_stopped once the loop is closed.
  void post(std::function<void()> f) {
    {
      const std::lock_guard guard(mutex_);
      if (closed_) throw motet::executor_stopped();
      queue_.push_back(std::move(f));
    }
    changed_.notify_one();
  }

  /// Ends the thread after its present function; functions that still wait are dropped.
  void close() {
    {
      const std::lock_guard guard(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    queue_.clear();
  }

  /// Makes the loop stand still; such a gap between two beats is not counted.
  void stall(std::chrono::milliseconds length) {
    post([this, length] {
      std::this_thread::sleep_for(length);
      last_beat_ = steady::now();
    });
  }

  /// Returns: the longest time between two beats, which should be 10 ms. Any thread.
  std::chrono::nanoseconds longest_gap() const { return std::chrono::nanoseconds(longest_gap_); }
  void forget_gaps() { longest_gap_ = 0; }

 private:
  void run() {
    name_this_thread("ui");
    last_beat_ = steady::now();
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock guard(mutex_);
        changed_.wait_until(guard, last_beat_ + beat, [&] { return closed_ || !queue_.empty(); });
        if (closed_) return;
        if (!queue_.empty()) {
          job = std::move(queue_.front());
          queue_.pop_front();
        }
      }
      if (steady::now() >= last_beat_ + beat) beat_once();
      if (job) job();
    }
  }

  void beat_once() {
    const auto time = steady::now();
    const auto gap = std::chrono::nanoseconds(time - std::exchange(last_beat_, time)).count();
    if (gap > longest_gap_) longest_gap_ = gap;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closed_ = false;
  steady::time_point last_beat_;  // for the loop's thread only
  std::atomic<std::chrono::nanoseconds::rep> longest_gap_{0};
  std::thread thread_;
};

}  // namespace fetch_test
