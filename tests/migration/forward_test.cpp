// SPDX-License-Identifier: MIT
// Ways that are not straight: no room where a fiber wants to go, called back while it is on its
// way, and failures that find it abroad.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::await;
using testing::first_error;
using testing::idle_thread;
using testing::run_here;
using testing::this_thread;

namespace {

/// Keeps what it is given, and calls it when it is told to.
class hoarder {
 public:
  template <typename F>
  void post(F f) {
    const std::lock_guard guard(lock_);
    posts_.emplace_back(std::move(f));
    post_count_ = static_cast<int>(posts_.size());
  }
  void lose() { const auto dropped = take(); }
  void call() {
    for (const auto& function : take()) function();
  }
  const std::atomic<int>& kept() const { return post_count_; }

 private:
  std::vector<std::function<void()>> take() {
    const std::lock_guard guard(lock_);
    return std::exchange(posts_, {});
  }

  std::mutex lock_;
  std::vector<std::function<void()>> posts_;
  std::atomic<int> post_count_{0};
};

/// The way from a thread to an executor that calls nothing.
struct astray {
  idle_thread worker;
  hoarder hoarded;
  const int home = this_thread();
  int thrown_on = 0;

  /// If the first place `lasts`, a portal leads back to it.
  void go(bool lasts, std::chrono::milliseconds limit = 10s) {
    try {
      teleport(worker.thread);
      with_timeout(limit, [&] {
        if (lasts) {
          const portal open(hoarded);
        } else {
          teleport(hoarded);
        }
      });
    } catch (...) {
      thrown_on = this_thread();
      throw;
    }
  }
};

/// A pool that has no room until this goes.
struct full_pool {
  full_pool() {
    pool.post([this] { released.wait(); });
  }
  ~full_pool() { released.set(); }
  event released;
  thread_pool pool{1, "full", 1};
};

}  // namespace

TEST_CASE("teleport() to a full pool ends at a deadline", "[detour]") {
  run_here([] {
    full_pool full;
    strand worker(full.pool);
    const int home = this_thread();
    for (const executor& target : {executor(full.pool), executor(worker)}) {
      CHECK_FALSE(move_on_after(5ms, [&] { const portal open(target); }));
      CHECK_FALSE(move_on_after(5ms, [&] { teleport(target); }));
      const auto traveller = spin([&] { teleport(target); });
      snooze();
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    CHECK(this_thread() == home);
    const auto shielded = spin(
        [&] { return move_on_after(5ms, [&] { shield([&] { const portal open(full.pool); }); }); });
    sleep_for(10ms);
    full.released.set();
    CHECK(shielded.await());  // its shield was there until the time was up and it had been away
    for (int i = 0; i < 100; ++i) const portal open(full.pool);
    full.pool.drain();
  });
}

TEST_CASE("teleport() to a full pool throws when the pool stops", "[detour]") {
  run_here([] {
    full_pool full;
    const auto traveller = spin([&] {
      try {
        const portal open(full.pool);
        return false;
      } catch (const executor_stopped&) {
        return true;
      }
    });
    snooze();
    const auto stopping = spin([&] { full.pool.stop(); });
    snooze();
    full.released.set();
    stopping.await();
    CHECK(traveller.await());
  });
}

TEST_CASE("teleport(): a fiber on its way between threads can be interrupted", "[detour]") {
  run_here([] {
    astray way;
    const auto lasts = GENERATE(false, true);
    const auto goes = [&] { way.go(lasts); };
    SECTION("cancelled") {
      const auto traveller = spin(goes);
      await(way.hoarded.kept(), 1);
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    SECTION("raised in") {
      const auto traveller = spin(goes);
      await(way.hoarded.kept(), 1);
      traveller.raise(std::make_exception_ptr(first_error()));
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
    SECTION("nobody calls it where it goes") {
      const auto traveller = spin(goes);
      await(way.hoarded.kept(), 1);
      way.hoarded.lose();
      CHECK_THROWS_AS(traveller.await(), executor_stopped);
    }
    CHECK(way.thrown_on == (lasts ? way.worker.number : way.home));
    way.hoarded.call();  // too late, which does nothing
  });
}

/// A slow machine may have it be late before it is on its way.
TEST_CASE("teleport(): a fiber on its way between threads can be ended by a deadline",
          "[detour][real]") {
  run_here([] {
    if (testing::on_sim()) return;  // whose time does not pass on the way
    astray way;
    const auto lasts = GENERATE(false, true);
    const auto made_abroad = GENERATE(false, true);
    const int expected_thread = lasts ? way.worker.number : way.home;
    for (auto limit = 5ms; limit < 1s && way.thrown_on != expected_thread; limit *= 4) {
      const auto traveller = spin([&] {
        if (made_abroad) {
          way.go(lasts, limit);
        } else {
          with_timeout(limit, [&] { way.go(lasts); });
        }
      });
      CHECK_THROWS_AS(traveller.await(), timed_out);
    }
    CHECK(way.thrown_on == expected_thread);
  });
}

TEST_CASE("teleport(): a fiber under a shield continues on its way", "[detour]") {
  run_here([] {
    idle_thread worker;
    hoarder hoarded;
    std::atomic<int> arrived{0};
    const auto traveller = spin([&] {
      teleport(worker.thread);
      shield([&] { teleport(hoarded); });
      arrived = this_thread();
      sleep();
    });
    await(hoarded.kept(), 1);
    traveller.cancel();
    await(hoarded.kept(), 2);  // it was called back, and has gone again
    worker.thread.call([&] { hoarded.call(); });
    CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    CHECK(arrived == worker.number);
  });
}

TEST_CASE("teleport(): an interruption at any time and place brings the fiber back",
          "[detour][stress]") {
  run_here([] {
    thread_pool pool(2);
    idle_thread worker;
    int ends = 0;
    const int rounds = static_cast<int>(testing::scaled(20'000, testing::under_tsan ? 100 : 300));
    for (int i = 0; i < rounds; ++i) {
      const auto traveller = spin([&] {
        for (;;) {
          teleport(worker.thread);
          const portal open(pool);
          move_on_after(10us, [&] { const portal further(worker.thread); });
          teleport(pool);
        }
      });
      for (int steps = i % 23; steps > 0; --steps) snooze();
      if (i % 3 == 0) sleep_for(std::chrono::microseconds(i % 97));
      traveller.cancel();
      try {
        traveller.await();
      } catch (const fiber_cancelled&) {
        ++ends;
      }
    }
    CHECK(ends == rounds);
  });
}

TEST_CASE("teleport(): a fiber takes room in a pool once, however often it returns", "[detour]") {
  run_here([] {
    idle_thread worker;
    thread_pool pool(2, "small", 8);
    strand first(pool);
    strand second(pool);
    executor_bound<int> first_counts(first, 0);
    executor_bound<int> second_counts(second, 0);
    for (int i = 0; i < 8; ++i) {
      pool.post([&, i] {
        for (int k = 0; k < 20; ++k) {
          executor_bound<int>& outer = i % 2 == 0 ? first_counts : second_counts;
          executor_bound<int>& inner = i % 2 == 0 ? second_counts : first_counts;
          outer.call([&](int& number) {
            number += inner.call([](int& counter) { return ++counter; }) > 0;
          });
        }
        const portal away(worker.thread);
        const portal back(pool);
      });
    }
    pool.drain();
    CHECK(first_counts.call([](int& number) { return number; }) == 160);
    CHECK(second_counts.call([](int& number) { return number; }) == 160);
    for (int i = 0; i < 20; ++i) pool.submit([] {}).get();
  });
}

TEST_CASE("thread_pool: the failure of a job's child on another thread is the job's failure",
          "[detour]") {
  run_here([] {
    thread_pool pool(1);
    idle_thread worker;
    const auto job = pool.submit([&] {
      teleport(worker.thread);
      spin([] { throw first_error(); });
      shield([] { snooze(); });
      return 1;
    });
    CHECK_THROWS_AS(job.get(), first_error);
    CHECK(pool.stats().front().failed == 1);
  });
}

TEST_CASE("thread_pool: none of several failures on other threads is lost", "[detour][real]") {
  constexpr int children = 4;
  options config = testing::quiet();
  std::atomic<int> unhandled{0};
  config.on_unhandled = [&](const std::exception_ptr&) { ++unhandled; };
  int notices = 0;
  run(config, [&] {
    idle_thread worker;
    std::optional<thread_pool> pool(std::in_place, 1);
    std::atomic<int> failures{0};
    const auto traveller = spin([&] {
      teleport(*pool);
      for (int i = 0; i < children; ++i) {
        spin([&] {
          shield([] { sleep_for(1ms); });
          ++failures;
          throw first_error();
        });
      }
      shield([&] {
        teleport(worker.thread);
        await(failures, children);
      });
      try {
        for (;;) sleep_for(1ms);
      } catch (const first_error&) {
        ++notices;
      }
    });
    await(failures, children);
    pool.reset();  // nothing of its own is left there
    try {
      traveller.await();
    } catch (const first_error&) {
      ++notices;
    }
  });
  CHECK(notices + unhandled == children);
}
