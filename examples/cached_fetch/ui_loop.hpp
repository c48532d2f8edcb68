// SPDX-License-Identifier: MIT
// An event loop of a user interface, as in any toolkit: a thread and a queue of functions. Of motet
// it uses only the exception that reports a closed loop.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <motet/base/errors.hpp>
#include <mutex>
#include <thread>
#include <utility>

namespace cached_fetch {

class ui_loop {
 public:
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

 private:
  void run() {
    for (;;) {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [&] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      const std::function<void()> job = std::move(queue_.front());
      queue_.pop_front();
      guard.unlock();
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace cached_fetch
