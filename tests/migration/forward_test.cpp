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
    const std::lock_guard in(lock_);
    kept_.emplace_back(std::move(f));
    kept_count_ = static_cast<int>(kept_.size());
  }
  void lose() { const auto lost = take(); }
  void call() {
    for (const auto& each : take()) each();
  }
  const std::atomic<int>& kept() const { return kept_count_; }

 private:
  std::vector<std::function<void()>> take() {
    const std::lock_guard in(lock_);
    return std::exchange(kept_, {});
  }

  std::mutex lock_;
  std::vector<std::function<void()>> kept_;
  std::atomic<int> kept_count_{0};
};

/// The way from a thread to an executor that calls nothing.
struct astray {
  idle_thread there;
  hoarder lost;
  const int here = this_thread();
  int thrown_on = 0;

  /// If the first place `lasts`, a portal leads back to it.
  void go(bool lasts, std::chrono::milliseconds limit = 10s) {
    try {
      teleport(there.itself);
      with_timeout(limit, [&] {
        if (lasts) {
          const portal open(lost);
        } else {
          teleport(lost);
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

TEST_CASE("a deadline ends the wait for room in a pool", "[detour]") {
  run_here([] {
    full_pool full;
    strand there(full.pool);
    const int here = this_thread();
    for (const executor& to : {executor(full.pool), executor(there)}) {
      CHECK_FALSE(move_on_after(5ms, [&] { const portal open(to); }));
      CHECK_FALSE(move_on_after(5ms, [&] { teleport(to); }));
      const auto traveller = spin([&] { teleport(to); });
      snooze();
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    CHECK(this_thread() == here);
    const auto shielded = spin(
        [&] { return move_on_after(5ms, [&] { shield([&] { const portal open(full.pool); }); }); });
    sleep_for(10ms);
    full.released.set();
    CHECK(shielded.await());  // its shield was there until the time was up and it had been away
    for (int i = 0; i < 100; ++i) const portal open(full.pool);
    full.pool.drain();
  });
}

TEST_CASE("a pool that stops tells who waits for room in it", "[detour]") {
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

TEST_CASE("on its way from one thread to another a fiber can be called back", "[detour]") {
  run_here([] {
    astray way;
    const auto lasts = GENERATE(false, true);
    const auto goes = [&] { way.go(lasts); };
    SECTION("cancelled") {
      const auto traveller = spin(goes);
      await(way.lost.kept(), 1);
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    SECTION("raised in") {
      const auto traveller = spin(goes);
      await(way.lost.kept(), 1);
      traveller.raise(std::make_exception_ptr(first_error()));
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
    SECTION("nobody calls it where it goes") {
      const auto traveller = spin(goes);
      await(way.lost.kept(), 1);
      way.lost.lose();
      CHECK_THROWS_AS(traveller.await(), executor_stopped);
    }
    CHECK(way.thrown_on == (lasts ? way.there.number : way.here));
    way.lost.call();  // too late, which does nothing
  });
}

/// A slow machine may have it be late before it is on its way.
TEST_CASE("so can it by a deadline", "[detour]") {
  run_here([] {
    if (testing::on_sim()) return;  // whose time does not pass on the way
    astray way;
    const auto lasts = GENERATE(false, true);
    const auto made_abroad = GENERATE(false, true);
    const int expected = lasts ? way.there.number : way.here;
    for (auto limit = 5ms; limit < 1s && way.thrown_on != expected; limit *= 4) {
      const auto traveller = spin([&] {
        if (made_abroad) {
          way.go(lasts, limit);
        } else {
          with_timeout(limit, [&] { way.go(lasts); });
        }
      });
      CHECK_THROWS_AS(traveller.await(), timed_out);
    }
    CHECK(way.thrown_on == expected);
  });
}

TEST_CASE("under a shield it stays on its way", "[detour]") {
  run_here([] {
    idle_thread there;
    hoarder lost;
    std::atomic<int> arrived{0};
    const auto traveller = spin([&] {
      teleport(there.itself);
      shield([&] { teleport(lost); });
      arrived = this_thread();
      sleep();
    });
    await(lost.kept(), 1);
    traveller.cancel();
    await(lost.kept(), 2);  // it was called back, and has gone again
    there.itself.call([&] { lost.call(); });
    CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    CHECK(arrived == there.number);
  });
}

TEST_CASE("called back at any time, from whichever place", "[detour][stress]") {
  run_here([] {
    thread_pool pool(2);
    idle_thread there;
    int ended = 0;
    const int rounds = static_cast<int>(testing::scaled(20'000, testing::under_tsan ? 100 : 300));
    for (int i = 0; i < rounds; ++i) {
      const auto traveller = spin([&] {
        for (;;) {
          teleport(there.itself);
          const portal open(pool);
          move_on_after(10us, [&] { const portal further(there.itself); });
          teleport(pool);
        }
      });
      for (int steps = i % 23; steps > 0; --steps) snooze();
      if (i % 3 == 0) sleep_for(std::chrono::microseconds(i % 97));
      traveller.cancel();
      try {
        traveller.await();
      } catch (const fiber_cancelled&) {
        ++ended;
      }
    }
    CHECK(ended == rounds);
  });
}

TEST_CASE("however often it comes back to a pool, a fiber takes room there once", "[detour]") {
  run_here([] {
    idle_thread there;
    thread_pool pool(2, "small", 8);
    strand first(pool);
    strand second(pool);
    executor_bound<int> ones(first, 0);
    executor_bound<int> others(second, 0);
    for (int i = 0; i < 8; ++i) {
      pool.post([&, i] {
        for (int k = 0; k < 20; ++k) {
          executor_bound<int>& outer = i % 2 == 0 ? ones : others;
          executor_bound<int>& inner = i % 2 == 0 ? others : ones;
          outer.call(
              [&](int& its) { its += inner.call([](int& counter) { return ++counter; }) > 0; });
        }
        const portal away(there.itself);
        const portal back(pool);
      });
    }
    pool.drain();
    CHECK(ones.call([](int& its) { return its; }) == 160);
    CHECK(others.call([](int& its) { return its; }) == 160);
    for (int i = 0; i < 20; ++i) pool.submit([] {}).get();
  });
}

TEST_CASE("what a job's child fails with abroad is the job's failure", "[detour]") {
  run_here([] {
    thread_pool pool(1);
    idle_thread there;
    const auto job = pool.submit([&] {
      teleport(there.itself);
      spin([] { throw first_error(); });
      shield([] { snooze(); });
      return 1;
    });
    CHECK_THROWS_AS(job.get(), first_error);
    CHECK(pool.stats().front().failed == 1);
  });
}

TEST_CASE("none of several failures abroad is forgotten", "[detour]") {
  constexpr int children = 4;
  options how = testing::quiet();
  std::atomic<int> unhandled{0};
  how.on_unhandled = [&](const std::exception_ptr&) { ++unhandled; };
  int told = 0;
  run(how, [&] {
    idle_thread there;
    std::optional<thread_pool> pool(std::in_place, 1);
    std::atomic<int> failed{0};
    const auto traveller = spin([&] {
      teleport(*pool);
      for (int i = 0; i < children; ++i) {
        spin([&] {
          shield([] { sleep_for(1ms); });
          ++failed;
          throw first_error();
        });
      }
      shield([&] {
        teleport(there.itself);
        await(failed, children);
      });
      try {
        for (;;) sleep_for(1ms);
      } catch (const first_error&) {
        ++told;
      }
    });
    await(failed, children);
    pool.reset();  // nothing of its own is left there
    try {
      traveller.await();
    } catch (const first_error&) {
      ++told;
    }
  });
  CHECK(told + unhandled == children);
}
