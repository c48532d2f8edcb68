// SPDX-License-Identifier: MIT
// How long a thread waits awake for the answer of another one.
#include "platform/adaptive_spin.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "catch.hpp"
#include "platform/ticks.hpp"

using namespace std::chrono_literals;
using motet::detail::adaptive_spin;
using motet::detail::ticks;

namespace {

bool never() {
  return false;
}

/// Has the next wait last as long as it may. The system may take the processor away meanwhile.
void expect_answer_soon(adaptive_spin& spin) {
  while (!spin.worthwhile()) spin.learn(ticks());
}

void pin_this_thread() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(::sched_getcpu(), &cpus);
  REQUIRE(::sched_setaffinity(0, sizeof cpus, &cpus) == 0);
}

/// Computes on the processor of the thread that makes it, and yields after each `turn`.
class rival {
 public:
  explicit rival(std::chrono::nanoseconds turn)
      : thread_([this, turn] {
          while (!ends_) {
            compute_for(turn);
            ::sched_yield();
          }
        }) {
    while (!computes_) ::sched_yield();
  }
  rival(const rival&) = delete;
  rival& operator=(const rival&) = delete;
  ~rival() {
    ends_ = true;
    thread_.join();
  }

 private:
  void compute_for(std::chrono::nanoseconds turn) {
    const auto start = std::chrono::steady_clock::now();
    while (!ends_ && std::chrono::steady_clock::now() - start < turn) computes_ = true;
  }

  std::atomic<bool> computes_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// Calls `f` on a thread that may use one processor.
template <typename F>
void on_one_processor(F f) {
  std::thread thread([&] {
    pin_this_thread();
    f();
  });
  thread.join();
}

/// Lets `rounds` waits pass without an answer.
/// Returns: after how many of them no further one was tried for some time.
int pauses_of(adaptive_spin& spin, int rounds) {
  int pauses = 0;
  for (int i = 0; i < rounds; ++i) {
    expect_answer_soon(spin);
    spin.wait(never, never);
    // More than one attempt, because the system may take the processor away in between.
    for (int attempt = 0; attempt < 3; ++attempt) spin.learn(ticks());
    if (!spin.worthwhile()) ++pauses;
  }
  return pauses;
}

/// Counts the looks of waits after one that was answered during a yield.
/// Returns: whether the next look was left out, the next wait began with a yield, and the one after
///          that with a round of looks.
bool yields_first_once() {
  adaptive_spin spin;
  spin.set_length(10s);
  expect_answer_soon(spin);
  int looks = 0;
  int slow_looks = 0;
  const auto answered_after = [&](int many) { return [&looks, many] { return ++looks > many; }; };
  const auto slow_look = [&] { return ++slow_looks > 0; };
  constexpr int looks_before_a_yield = 256;
  if (!spin.wait(answered_after(looks_before_a_yield), &never)) return false;
  looks = 0;
  spin.look(answered_after(1), slow_look);
  if (looks + slow_looks != 0) return false;
  if (!spin.wait(answered_after(1), &never) || looks != 2) return false;
  looks = 0;
  return spin.wait(answered_after(100), slow_look) && slow_looks == 1 && looks == 64;
}

}  // namespace

// In both tests of short yields the system may run another program for a time slice, so there are
// several attempts.

TEST_CASE("adaptive_spin::wait() yields first after an answer that came during a yield",
          "[awake]") {
  for (int attempts = 1; !yields_first_once(); ++attempts) REQUIRE(attempts < 100);
}

TEST_CASE("adaptive_spin::wait() pauses after a yield that lasted a time slice", "[awake]") {
  on_one_processor([] {
    adaptive_spin spin;
    spin.set_length(100us);
    const rival other(1h);
    const auto start = std::chrono::steady_clock::now();
    const int pauses = pauses_of(spin, 20);
    CHECK(pauses > 0);
    CHECK(std::chrono::steady_clock::now() - start >= (pauses - 1) * 10ms);
  });
}

TEST_CASE("adaptive_spin::wait() does not pause after a yield of some microseconds", "[awake]") {
  on_one_processor([] {
    adaptive_spin spin;
    spin.set_length(100us);
    int more_pauses = 20;
    for (int attempt = 0; attempt < 10 && more_pauses > 5; ++attempt) {
      const int pauses_alone = pauses_of(spin, 20);  // because of other programs
      const rival other(30us);
      more_pauses = std::min(more_pauses, pauses_of(spin, 20) - pauses_alone);
    }
    CHECK(more_pauses <= 5);
  });
}
