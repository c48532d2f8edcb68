// SPDX-License-Identifier: MIT
// The lock that is handed on in order of arrival, and whose holder looks whether its turn is over.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;
using testing::words;
using region = timeslice_lock::unlocked_region;
using share_list = std::array<std::size_t, 3>;

namespace {

/// Without a switchpoint.
void compute(std::chrono::nanoseconds span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) continue;
}

/// Returns: how often each of two plain threads and a motet thread has been in, meanwhile.
share_list shares_of_hogs(timeslice_lock& lock) {
  long a = 0;
  long b = 0;
  std::atomic<bool> finished{false};
  std::atomic<bool> inconsistent{false};
  share_list shares{};
  const auto hog = [&](std::size_t number) {
    const std::lock_guard guard(lock);
    while (!finished.load(std::memory_order_relaxed)) {
      if (a + b != 0) inconsistent = true;
      ++a;
      compute(2us);
      --b;
      ++shares[number];
      lock.yield_if_due();
    }
  };
  std::thread first([&] { hog(0); });
  std::thread second([&] { hog(1); });
  motet::thread third(testing::quiet(), [&] { hog(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(testing::scaled(2'000, 300)));
  finished = true;
  first.join();
  second.join();
  third.await();
  CHECK_FALSE(inconsistent);
  return shares;
}

bool about_equal(const share_list& shares) {
  const std::size_t total = shares[0] + shares[1] + shares[2];
  return *std::min_element(shares.begin(), shares.end()) > total / 8;
}

}  // namespace

TEST_CASE("timeslice_lock: a free one is taken without a wait", "[timeslice]") {
  run_here([] {
    timeslice_lock lock;
    lock.lock();
    CHECK_THROWS_AS(lock.lock(), std::logic_error);
    CHECK_FALSE(spin([&] { return lock.try_lock(); }).await());
    CHECK_THROWS_WITH(spin([&] { lock.unlock(); }).await(),
                      "timeslice_lock: the caller does not hold the lock");
    for (int i = 0; i < 1000; ++i) lock.yield_if_due();
    lock.unlock();
    CHECK_THROWS_AS(lock.unlock(), std::logic_error);
    CHECK(lock.try_lock());
    lock.unlock();
    CHECK(lock.stats().handovers == 0);
    CHECK_THROWS_AS(timeslice_lock(0ms), std::invalid_argument);
    CHECK_THROWS_AS(timeslice_lock(clock::duration::max()), std::invalid_argument);
    CHECK_THROWS_AS(timeslice_lock(24h * 366), std::invalid_argument);
  });
}

TEST_CASE("timeslice_lock is handed on in order of arrival", "[timeslice]") {
  run_here([] {
    timeslice_lock lock;
    words order;
    lock.lock();
    std::vector<fiber<void>> waiters;
    for (const char* name : {"a", "b", "c"}) {
      waiters.push_back(spin([&, name] {
        const std::lock_guard guard(lock);
        order.emplace_back(name);
        snooze();
      }));
    }
    snooze();
    lock.unlock();
    CHECK_FALSE(lock.try_lock());  // it is a's already
    for (const auto& waiter : waiters) waiter.await();
    CHECK(order == words{"a", "b", "c"});
    CHECK(lock.stats().handovers == 3);
  });
}

TEST_CASE("timeslice_lock::yield_if_due() puts the holder behind all waiters", "[timeslice]") {
  run_here([] {
    timeslice_lock lock(1us);
    words order;
    const auto take_turns = [&](const char* name) {
      const std::lock_guard guard(lock);
      for (int i = 0; i < 3; ++i) {
        order.emplace_back(name);
        compute(5us);
        lock.yield_if_due();
      }
    };
    const auto a = spin([&] { take_turns("a"); });
    const auto b = spin([&] { take_turns("b"); });
    const auto c = spin([&] { take_turns("c"); });
    lock.lock();
    snooze();
    lock.unlock();
    await_all(a, b, c);
    CHECK(order == words{"a", "b", "c", "a", "b", "c", "a", "b", "c"});
    CHECK(lock.stats().forced >= 6);
  });
}

TEST_CASE("timeslice_lock does not disturb the holder within its turn", "[timeslice]") {
  run_here([] {
    timeslice_lock lock(1h);
    lock.lock();
    const auto waits = spin([&] { const std::lock_guard guard(lock); });
    snooze();
    for (int i = 0; i < 1000; ++i) lock.yield_if_due();
    CHECK(lock.stats().handovers == 0);
    lock.unlock();
    waits.await();
  });
}

/// One of them may be kept from running by something else on this machine: the best of some tries.
TEST_CASE("timeslice_lock is shared fairly by threads, which never see inconsistent data",
          "[timeslice][stress]") {
  timeslice_lock lock(200us);
  share_list shares{};
  for (int tries = 0; tries < 5 && !about_equal(shares); ++tries) shares = shares_of_hogs(lock);
  INFO(shares[0] << ", " << shares[1] << ", " << shares[2]);
  CHECK((about_equal(shares) || testing::under_tsan || testing::under_asan));
  CHECK(lock.stats().forced > 0);
}

TEST_CASE("timeslice_lock: no waiter overtakes another", "[timeslice][stress]") {
  timeslice_lock lock(1us);
  const std::size_t rounds = testing::scaled(100'000, testing::under_tsan ? 1'000 : 5'000);
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::size_t j = 0; j < rounds / 4; ++j) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  run_here([&] {
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(spin([&] {
        for (std::size_t j = 0; j < rounds / 4; ++j) {
          const std::lock_guard guard(lock);
          ++count;
          lock.yield_if_due();
        }
      }));
    }
    for (const auto& waiter : fibers) waiter.await();
  });
  for (auto& thread : threads) thread.join();
  CHECK(count == rounds * 2);
}

TEST_CASE("timeslice_lock is released around a blocking call, and taken again even if it throws",
          "[timeslice]") {
  run_here([] {
    timeslice_lock lock;
    lock.lock();
    words order;
    const auto rival = spin([&] {
      const std::lock_guard guard(lock);
      order.emplace_back("other");
    });
    {
      const region open(lock);
      sleep_for(1ms);
      order.emplace_back("slept");
    }
    CHECK(order == words{"other", "slept"});
    try {
      const region open(lock);
      throw std::runtime_error("blocked");
    } catch (const std::runtime_error&) {
      order.emplace_back("caught");
    }
    CHECK_FALSE(spin([&] { return lock.try_lock(); }).await());
    lock.unlock();
    rival.await();
    CHECK_THROWS_AS(region(lock), std::logic_error);
  });
}

/// Each time it waits for what is left of the other one's turn, and no longer.
TEST_CASE("timeslice_lock: a holder that often blocks gets on beside one that computes",
          "[timeslice][stress]") {
  constexpr auto quantum = 5ms;
  constexpr auto blocked = 1ms;
  constexpr int times = 10;
  auto best = std::chrono::steady_clock::duration::max();
  for (int tries = 0; tries < 5 && best > times * (quantum + 2 * blocked); ++tries) {
    timeslice_lock lock(quantum);
    std::atomic<bool> finished{false};
    std::thread hog([&] {
      const std::lock_guard guard(lock);
      while (!finished.load(std::memory_order_relaxed)) lock.yield_if_due();
    });
    while (lock.try_lock()) lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    lock.lock();
    for (int i = 0; i < times; ++i) {
      const region open(lock);
      std::this_thread::sleep_for(blocked);
    }
    best = std::min(best, std::chrono::steady_clock::now() - start);
    finished = true;
    lock.unlock();
    hog.join();
    CHECK(lock.stats().handovers >= times);
  }
  const int slack = testing::under_tsan || testing::under_asan ? 4 : 2;
  CHECK(best <= slack * times * (quantum + 2 * blocked));
}

TEST_CASE("timeslice_lock: an interrupted waiter leaves the queue", "[timeslice]") {
  run_here([] {
    timeslice_lock lock;
    lock.lock();
    CHECK_FALSE(spin([&] { return move_on_after(1ms, [&] { lock.lock(); }); }).await());
    const auto victim = spin([&] { const std::lock_guard guard(lock); });
    bool reached = false;
    const auto stays = spin([&] {
      const std::lock_guard guard(lock);
      reached = true;
    });
    snooze();
    SECTION("before its turn has come") {
      victim.cancel();
      snooze();
      lock.unlock();
    }
    SECTION("in the moment in which it has") {
      lock.unlock();
      victim.cancel();
    }
    try {
      victim.await();
    } catch (const fiber_cancelled&) {
    }
    stays.await();
    CHECK(reached);
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEST_CASE("timeslice_lock: a pending interruption is thrown after the lock was taken again",
          "[timeslice]") {
  run_here([] {
    timeslice_lock lock(1us);
    lock.lock();
    bool is_held = false;
    const auto yields = spin([&] {
      const std::lock_guard guard(lock);
      compute(2us);
      try {
        lock.yield_if_due();
      } catch (const cancelled&) {
        is_held = !lock.try_lock();
        throw;
      }
    });
    snooze();
    const auto next = spin([&] {
      const std::lock_guard guard(lock);
      yields.cancel();
    });
    snooze();
    lock.unlock();
    CHECK_THROWS_AS(yields.await(), fiber_cancelled);
    CHECK(is_held);
    next.await();
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEST_CASE("timeslice_lock: on_stall reports a holder that never yields once per turn",
          "[timeslice]") {
  if (testing::on_sim()) return;
  std::atomic<int> reports{0};
  std::atomic<std::int64_t> stall_length{0};
  timeslice_lock lock(1ms, [&](clock::duration span) {
    ++reports;
    stall_length = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  });
  const auto stall = [&](auto begin_waiter) {
    lock.lock();
    begin_waiter();
    std::this_thread::sleep_for(60ms);
    const int reports_before = reports.load();
    lock.unlock();
    return reports_before;
  };
  std::thread plain;
  CHECK(stall([&] { plain = std::thread([&] { const std::lock_guard guard(lock); }); }) == 1);
  plain.join();
  CHECK(stall_length >= 10);
  std::optional<motet::thread> with_fibers;
  CHECK(stall([&] {
          with_fibers.emplace(testing::quiet(), [&] { const std::lock_guard guard(lock); });
        }) == 2);
  with_fibers->await();
}

TEST_CASE("timeslice_lock: the waiter throws what on_stall throws", "[timeslice]") {
  if (testing::on_sim()) return;
  timeslice_lock lock(1ms, [](clock::duration) { throw std::runtime_error("stalled"); });
  lock.lock();
  std::string message;
  std::thread waits([&] {
    try {
      lock.lock();
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  });
  waits.join();
  CHECK(message == "stalled");
  lock.unlock();
  CHECK(lock.stats().handovers == 0);
}

TEST_CASE("timeslice_lock: a turn that comes while on_stall throws goes to the next waiter",
          "[timeslice]") {
  if (testing::on_sim()) return;
  run([] {
    notification stalled;
    bool given_up = false;
    timeslice_lock lock(1ms, [&](clock::duration) {
      stalled.notify_one();
      while (!given_up) snooze();  // the turn is the waiter's from now on
      throw std::runtime_error("stalled");
    });
    const auto take_it = [&] { const std::lock_guard guard(lock); };
    const auto hold_until_stall = [&] {
      lock.lock();
      stalled.wait();
      lock.unlock();
      given_up = true;
    };
    auto holds = spin(hold_until_stall);
    snooze();
    auto first = spin(take_it);
    auto second = spin(take_it);
    CHECK_THROWS_AS(first.await(), std::runtime_error);
    CHECK(move_on_after(1s, [&] { second.await(); }));
    holds.await();
    given_up = false;
    auto holds_again = spin(hold_until_stall);
    snooze();
    auto alone = spin(take_it);
    CHECK_THROWS_AS(alone.await(), std::runtime_error);
    holds_again.await();
    CHECK(lock.try_lock());  // nobody has it
    lock.unlock();
  });
}

TEST_CASE("timeslice_lock: the destructor throws in its waiters", "[timeslice]") {
  run_here([] {
    std::optional<timeslice_lock> lock(std::in_place);
    lock->lock();
    const auto waits = spin([&] { lock->lock(); });
    snooze();
    lock.reset();
    CHECK_THROWS_AS(waits.await(), std::logic_error);
  });
}
