// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait, and three ways to end such a loop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <motet/motet.hpp>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

namespace testing {

using namespace motet;
using namespace std::chrono_literals;

enum class way { time_limit, cancel, stop };

/// Repeats a call until it is interrupted, or until that is overdue.
class endless_loop {
 public:
  using wall_clock = std::chrono::steady_clock;

  explicit endless_loop(way ended_by) : method_(ended_by) {}

  /// A call that returns a code notices an interruption if that is operation_canceled.
  template <typename F>
  void operator()(F call) {
    const auto repeat = [&] {
      try {
        while (!noticed_ && !overdue()) repeat_once(call);
      } catch (const cancelled&) {
        noticed_ = true;
        throw;
      }
    };
    if (method_ == way::time_limit) {
      asked_at_ = (wall_clock::now() + 2ms).time_since_epoch().count();
      move_on_after(2ms, repeat);
      return;
    }
    // One that asks from outside, in the midst of the loop, and without a runtime of its own.
    std::stop_source stop;
    std::thread asks([this, &stop, looping = current()] {
      const auto start = wall_clock::now();
      while (calls_ == 0 && !ended_ && !waits_) {
        waits_ = wall_clock::now() - start > far_too_long;
        std::this_thread::sleep_for(50us);
      }
      asked_at_ = wall_clock::now().time_since_epoch().count();
      if (method_ == way::stop) stop.request_stop();
      if (method_ == way::cancel) looping.cancel("the loop is to end");
    });
    const at_end joining([&] {
      ended_ = true;
      asks.join();
    });
    if (method_ == way::stop) {
      move_on_when_stopped(stop.get_token(), repeat);
    } else {
      repeat();
    }
  }

  /// Returns: whether the loop is to end by now.
  bool asked() const {
    return wall_clock::now().time_since_epoch() >= wall_clock::duration(asked_at_.load());
  }
  /// Returns: what is wrong with the loop; nothing if it has ended in time.
  const char* flaw() const { return waits_ ? " waits" : noticed_ ? "" : " goes on"; }

 private:
  /// Each call takes longer than the clock does: so these many take several times as long as a
  /// thread may leave its backend and its mail unread.
  static constexpr std::size_t far_too_many = 100'000;
  static constexpr auto far_too_long = 1s;

  template <typename F>
  void repeat_once(F& call) {
    if constexpr (std::is_same_v<std::invoke_result_t<F&>, std::error_code>) {
      noticed_ = call() == std::errc::operation_canceled;
    } else {
      call();
    }
    ++calls_;
  }

  bool overdue() {
    const auto instant = wall_clock::now().time_since_epoch();
    const wall_clock::duration requested{asked_at_.load()};
    if (instant < requested) return false;
    if (calls_when_asked_ == 0) calls_when_asked_ = calls_;
    return calls_ - calls_when_asked_ > far_too_many || instant - requested > far_too_long;
  }

  const way method_;
  std::atomic<wall_clock::rep> asked_at_{wall_clock::duration::max().count()};
  std::atomic<std::size_t> calls_{0};
  std::size_t calls_when_asked_ = 0;
  std::atomic<bool> ended_{false};
  std::atomic<bool> waits_{false};
  bool noticed_ = false;
};

/// A switchpoint of the documentation, by its name there, perhaps with a word on how it is called,
/// and what makes a loop of calls of it. tests/switchpoints_test.py reads the names.
struct switchpoint_row {
  const char* name;
  void (*calls)(endless_loop& again);
};

using switchpoint_table = std::vector<switchpoint_row>;

/// Returns: what is wrong with a loop of the row's calls; empty if the loop has ended in time.
inline std::string flaw_of(const switchpoint_row& row, way ended_by) {
  endless_loop again(ended_by);
  try {
    run(quiet(), [&] {
      try {
        row.calls(again);
      } catch (const cancelled&) {
      } catch (const fiber_cancelled&) {  // in another fiber that the row awaits
      }
    });
  } catch (const std::exception& error) {
    return std::string(row.name) + " throws " + error.what();
  }
  const std::string flaw = again.flaw();
  return flaw.empty() ? flaw : row.name + flaw;
}

inline words flaws_of(const switchpoint_table& table, way ended_by) {
  words problems;
  for (const switchpoint_row& row : table) {
    std::string flaw = flaw_of(row, ended_by);
    if (!flaw.empty()) problems.push_back(std::move(flaw));
  }
  return problems;
}

}  // namespace testing

/// The three tests of a table.
#define ENDLESS_LOOPS_END(table)                                                       \
  TEST_CASE("move_on_after() ends a loop of calls that need not wait") {               \
    if (testing::on_sim()) return; /* where no time passes while a fiber is busy */    \
    CHECK(testing::flaws_of(table, testing::way::time_limit) == testing::words());     \
  }                                                                                    \
  TEST_CASE("fiber::cancel() from a thread ends a loop of calls that need not wait") { \
    CHECK(testing::flaws_of(table, testing::way::cancel) == testing::words());         \
  }                                                                                    \
  TEST_CASE("move_on_when_stopped() ends a loop of calls that need not wait") {        \
    CHECK(testing::flaws_of(table, testing::way::stop) == testing::words());           \
  }
