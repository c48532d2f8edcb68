// SPDX-License-Identifier: MIT
// What a sequence of calls of the C library did: results, errors and data, a line each. A scenario
// makes the calls on a thread, where the C library has them, and in a fiber, and both must tell the
// same.
#pragma once

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace testing {

class journal {
 public:
  /// Notes the result of a call, and errno if that is below 0.
  template <typename T>
  T call(std::string_view name, T result) {
    const int error = errno;
    std::string line(name);
    line += " = " + std::to_string(result);
    if (result < 0) line += std::string(" ") + ::strerrorname_np(error);
    lines_.push_back(line);
    return result;
  }
  void text(std::string_view name, std::string_view value) {
    lines_.push_back(std::string(name) + ": " + std::string(value));
  }
  void number(std::string_view name, long value) { text(name, std::to_string(value)); }
  /// That the mode of a descriptor is as it was.
  void mode(int fd) { number("mode", ::fcntl(fd, F_GETFL)); }
  const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  std::vector<std::string> lines_;
};

using scenario = std::function<void(journal&)>;

inline std::vector<std::string> on_thread(const scenario& calls) {
  journal log;
  std::thread([&] { calls(log); }).join();
  return log.lines();
}

/// The number of times another fiber of the thread ran meanwhile goes to `others`.
inline std::vector<std::string> in_fiber(const scenario& calls, std::size_t& others) {
  journal log;
  motet::run([&] {
    motet::fiber<void> clock = motet::spin([&] {
      for (;; ++others) motet::sleep_for(std::chrono::milliseconds(1));
    });
    calls(log);
    clock.cancel();
  });
  return log.lines();
}

/// Makes the calls on a thread and in a fiber.
inline void compare(const scenario& calls) {
  std::size_t others = 0;
  const auto expected = on_thread(calls);
  CHECK(in_fiber(calls, others) == expected);
}

/// The same, and other fibers of the thread run while the fiber waits. On a busy machine the thread
/// may not get its turn in time, so it has several attempts.
inline void compare_waiting(const scenario& calls) {
  std::size_t others = 0;
  const auto expected = on_thread(calls);
  for (int i = 0; i < 5 && others < 3; ++i) {
    others = 0;
    CHECK(in_fiber(calls, others) == expected);
  }
  CHECK(others >= 3);
}

/// Returns: what a clock will show after the span, for calls that wait until a time.
inline timespec time_after(clockid_t id, std::chrono::milliseconds span) {
  timespec time{};
  ::clock_gettime(id, &time);
  time.tv_nsec += std::chrono::nanoseconds(span).count();
  time.tv_sec += time.tv_nsec / 1'000'000'000;
  time.tv_nsec %= 1'000'000'000;
  return time;
}

/// Does something on another thread a little later, while the caller waits.
class later {
 public:
  explicit later(std::function<void()> action)
      : thread_([action = std::move(action)] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          action();
        }) {}
  ~later() { thread_.join(); }
  later(const later&) = delete;
  later& operator=(const later&) = delete;

 private:
  std::thread thread_;
};

}  // namespace testing
