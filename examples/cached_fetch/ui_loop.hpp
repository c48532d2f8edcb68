// SPDX-License-Identifier: MIT
// A user interface's event loop as somebody else might have written it: a thread and a queue of
// functions. Of motet it has but the exception that says it is closed; post() makes it an executor.
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

namespace cached_fetch {

class ui_loop {
 public:
  using steady = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds beat{10};

  ui_loop() : thread_([this] { run(); }) {}
  ui_loop(const ui_loop&) = delete;
  ui_loop& operator=(const ui_loop&) = delete;
  ~ui_loop() { close(); }

  /// Has `f` called, soon, by the loop's thread. Any thread.
  /// Throws: motet::executor_stopped once it is closed.
  void post(std::function<void()> f) {
    {
      const std::lock_guard in(mutex_);
      if (closed_) throw motet::executor_stopped();
      queue_.push_back(std::move(f));
    }
    changed_.notify_one();
  }

  /// Ends the thread when it has done what it does now; what waits in the queue is dropped.
  void close() {
    {
      const std::lock_guard in(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    queue_.clear();  // nobody adds to it any more
  }

  /// The loop stands still for so long, on purpose: what that does to the heart is not counted.
  void stall(std::chrono::milliseconds length) {
    post([this, length] {
      std::this_thread::sleep_for(length);
      last_beat_ = steady::now();
    });
  }

  /// The longest time between two beats of its heart, which are to be 10 ms apart. Any thread.
  std::chrono::nanoseconds longest_gap() const { return std::chrono::nanoseconds(longest_gap_); }
  void forget_gaps() { longest_gap_ = 0; }

 private:
  void run() {
    name_this_thread("ui");
    last_beat_ = steady::now();
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock in(mutex_);
        changed_.wait_until(in, last_beat_ + beat, [&] { return closed_ || !queue_.empty(); });
        if (closed_) return;
        if (!queue_.empty()) {
          next = std::move(queue_.front());
          queue_.pop_front();
        }
      }
      if (steady::now() >= last_beat_ + beat) beat_once();
      if (next) next();
    }
  }

  void beat_once() {
    const auto now = steady::now();
    const auto gap = std::chrono::nanoseconds(now - std::exchange(last_beat_, now)).count();
    if (gap > longest_gap_) longest_gap_ = gap;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closed_ = false;
  steady::time_point last_beat_;  // the loop's own
  std::atomic<std::chrono::nanoseconds::rep> longest_gap_{0};
  std::thread thread_;
};

}  // namespace cached_fetch
