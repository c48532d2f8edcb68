// SPDX-License-Identifier: MIT
// Places for fibers to go to, and how to know which one they have come to.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <thread>
#include <utility>

#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

namespace testing {

using namespace std::chrono_literals;

/// The compiler takes std::this_thread::get_id() for the same all through a function.
inline int this_thread() {
  return ::gettid();
}

/// One that waits to be given work.
struct idle_thread {
  motet::thread thread{quiet(), [] { motet::sleep(); }};
  int number = thread.call([] { return this_thread(); });
};

/// Calls at once whatever it is given, as none of motet's own.
struct caller {
  template <typename F>
  void post(F f) {
    ++calls;
    f();
  }
  int calls = 0;
};

/// Loses what it is given.
struct forgetful {
  template <typename F>
  void post(F) {}
};

/// A loop that knows nothing of motet, as that of a user interface does not.
class foreign_loop {
 public:
  ~foreign_loop() { close(); }
  template <typename F>
  void post(F f) {
    const std::lock_guard guard(lock_);
    if (closed_) throw motet::executor_stopped();
    functions_.emplace_back(std::move(f));
    condition_.notify_one();
  }
  void take_no_more() {
    const std::lock_guard guard(lock_);
    closed_ = true;
    condition_.notify_one();
  }
  /// What is left is lost.
  void close() {
    take_no_more();
    if (runs_.joinable()) runs_.join();
    functions_.clear();
  }
  int number() const { return number_; }
  std::size_t calls() const { return calls_; }

 private:
  void run() {
    number_ = this_thread();
    for (std::unique_lock guard(lock_);;) {
      condition_.wait(guard, [&] { return closed_ || !functions_.empty(); });
      if (closed_) return;
      const std::function<void()> next = std::move(functions_.front());
      functions_.pop_front();
      guard.unlock();
      ++calls_;
      next();
      guard.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable condition_;
  std::deque<std::function<void()>> functions_;
  bool closed_ = false;
  std::atomic<int> number_{0};
  std::atomic<std::size_t> calls_{0};
  std::thread runs_{[this] { run(); }};
};

/// Waits until `reached`, at most ten seconds, without a switchpoint that could be interrupted. On
/// sim, whose time does not wait for other threads, that takes a while as well.
inline void await(const std::atomic<int>& place, int goal) {
  using clock = std::chrono::steady_clock;
  motet::shield([&] {
    for (const auto start = clock::now(); place < goal && clock::now() - start < 10s;) {
      motet::sleep_for(1ms);
      if (on_sim()) std::this_thread::sleep_for(100us);
    }
  });
}

}  // namespace testing
