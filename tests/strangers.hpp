// SPDX-License-Identifier: MIT
// Threads that get hold of each other's fibers: with a runtime of their own, and without.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <future>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixtures.hpp"
#include "quiet.hpp"

namespace testing {

/// Threads that are joined in the end; what they find out is read after that.
class strangers {
 public:
  strangers() = default;
  strangers(const strangers&) = delete;
  strangers& operator=(const strangers&) = delete;
  ~strangers() { join(); }

  template <typename F>
  void start(F function) {
    ++busy_;
    threads_.emplace_back([this, function = std::move(function)]() mutable {
      function();
      --busy_;
    });
  }
  /// Of those that have a runtime.
  template <typename F>
  void start_runtime(F function) {
    start([function = std::move(function)]() mutable { motet::run(quiet(), function); });
  }
  /// Waits for them without keeping this thread's own fibers from what they are asked.
  void settle() {
    while (busy_ > 0) {
      motet::snooze();
      std::this_thread::yield();
    }
    join();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  /// Virtual time runs ahead of other threads, so a thread that waits for one seems stuck.
  static motet::options quiet() { return testing::poked<first_error>(testing::quiet()); }

 private:
  std::atomic<int> busy_{0};
  std::vector<std::thread> threads_;
};

/// A thread with a runtime whose main fiber offers a handle and then waits until it is dismissed.
template <typename T>
class distant {
 public:
  /// `spin_it` spins the fiber on that thread.
  template <typename F>
  explicit distant(F spin_it) {
    std::promise<motet::fiber<T>> offer;
    auto handle_future = offer.get_future();
    thread_ = std::thread([this, &offer, spin_it]() mutable {
      motet::run(strangers::quiet(), [&] {
        main_ = motet::current();
        offer.set_value(spin_it());
        for (bool dismissed = false; !dismissed;) {
          try {
            dismissed = motet::suspend<bool>();
          } catch (const std::exception&) {
            ++failures_;
          }
        }
      });
    });
    handle = handle_future.get();
  }
  distant(const distant&) = delete;
  distant& operator=(const distant&) = delete;
  ~distant() { dismiss(); }

  /// Ends the thread.
  void dismiss() {
    if (!thread_.joinable()) return;
    main_.schedule(true);
    thread_.join();
  }
  /// Returns: how many failures its main fiber was told of; after dismiss().
  int failures() const { return failures_; }

  motet::fiber<T> handle;

 private:
  std::thread thread_;
  motet::fiber_ref main_;
  int failures_ = 0;
};

/// What awaiting came to.
template <typename Await>
std::string outcome_of(Await await) {
  try {
    return std::to_string(await());
  } catch (const motet::fiber_cancelled& error) {
    return error.reason();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Holds what is to be told to one side, till it is asked for.
template <typename T>
class box {
 public:
  void put(T item) {
    const std::lock_guard guard(lock_);
    items_.push_back(std::move(item));
  }
  std::optional<T> take() {
    const std::lock_guard guard(lock_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

 private:
  std::mutex lock_;
  std::deque<T> items_;
};

}  // namespace testing

namespace testing::among_strangers {

/// Calls `function` as the main fiber of a quiet runtime, like that of a stranger.
template <typename F>
void run_here(F function) {
  motet::run(strangers::quiet(), function);
}

}  // namespace testing::among_strangers
