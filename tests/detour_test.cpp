// SPDX-License-Identifier: MIT
// Ways that are not straight: no room where a fiber wants to go, nobody who calls it there, called
// back from one place while on its way from another, and executors that a fiber serves.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::await;
using testing::first_error;
using testing::foreign_loop;
using testing::forgetful;
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

/// An executor that a fiber serves.
class served_by_fiber {
 public:
  template <typename F>
  void post(F f) {
    left_.push(std::function<void()>(std::move(f)));
  }
  void serve() {
    for (const std::function<void()>& each : left_) each();
  }
  void close() { left_.close(); }

 private:
  channel<std::function<void()>> left_{unbounded};
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

TEST_CASE("so can it by a deadline", "[detour]") {
  run_here([] {
    if (testing::on_sim()) return;  // whose time does not pass on the way
    astray way;
    const auto lasts = GENERATE(false, true);
    SECTION("from home") {
      CHECK_THROWS_AS(spin([&] { with_timeout(5ms, [&] { way.go(lasts); }); }).await(), timed_out);
    }
    SECTION("made abroad") {
      CHECK_THROWS_AS(spin([&] { way.go(lasts, 5ms); }).await(), timed_out);
    }
    CHECK(way.thrown_on == (lasts ? way.there.number : way.here));
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

TEST_CASE("what a main fiber holds is its own abroad", "[detour]") {
  run(testing::quiet(), [] {
    idle_thread there;
    foreign_loop loop;
    motet::mutex lock;
    shared_mutex shared;
    lock.lock();
    shared.lock();
    {
      const portal open(there.itself);
      CHECK_THROWS_AS(lock.lock(), std::logic_error);
      lock.unlock();
      shared.unlock();
    }
    {
      const portal open(loop);
      lock.lock();
    }
    CHECK_THROWS_AS(spin([&] { lock.unlock(); }).await(), std::logic_error);
    lock.unlock();
  });
}

TEST_CASE("who called a main fiber is not left for good", "[detour]") {
  run_here([] {
    idle_thread there;
    std::optional<bool> refused;
    const auto leaves = [&] {
      const int here = this_thread();
      {
        const portal open(there.itself);
        CHECK(this_thread() == there.number);
      }
      CHECK(this_thread() == here);
      try {
        teleport(there.itself);
        refused = false;
      } catch (const std::logic_error&) {
        refused = true;
      }
    };
    offload(leaves);
    CHECK(refused == true);
    refused.reset();
    std::thread(leaves).join();
    CHECK(refused == true);
  });
}

TEST_CASE("a fiber that serves an executor and one that visits keep what is theirs", "[detour]") {
  run_here([] {
    served_by_fiber desk;
    const int here = this_thread();
    std::atomic<int> thrown_on{0};
    std::atomic<int> place{0};
    motet::thread there(testing::quiet(), [&] { shield([&] { desk.serve(); }); });
    const int other = there.call([] { return this_thread(); });
    const auto visits = [&](auto does) {
      return [&, does] {
        const portal open(desk);
        ++place;
        try {
          does();
        } catch (...) {
          thrown_on = this_thread();
          throw;
        }
      };
    };
    SECTION("its cancellation") {
      const auto visitor = spin(visits([] { sleep(); }));
      await(place, 1);
      visitor.cancel();
      CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
      CHECK(thrown_on == other);
    }
    SECTION("its deadline") {
      CHECK_FALSE(move_on_after(2ms, visits([] { sleep(); })));
      CHECK(thrown_on == other);
    }
    SECTION("its children") {
      const auto visitor = spin([&] {
        teleport(desk);
        spin([] { throw first_error(); });
        shield([] { snooze(); });
      });
      CHECK_THROWS_AS(visitor.await(), first_error);
    }
    SECTION("where it is already") {
      visits([&] {
        const portal again(desk);
        teleport(desk);
        CHECK(this_thread() == other);
      })();
    }
    SECTION("the desk is free when its visitor has gone on") {
      idle_thread further;
      visits([&] { teleport(further.itself); })();
      CHECK_THROWS_AS(visits([&] { const portal open(further.itself); })(), std::logic_error);
      spin([&] {
        teleport(desk);
        spin([&] {
          visits([] {})();  // would wait for ever if its parent's visit lasted
        });
        teleport(further.itself);
      }).await();
    }
    visits([] {})();
    CHECK(this_thread() == here);
    desk.close();
    there.await();
  });
}

TEST_CASE("who serves an executor and is to end ends the visit", "[detour]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::optional<motet::thread> there(std::in_place, testing::quiet(), [&] { desk.serve(); });
    const auto visitor = spin([&] {
      teleport(desk);
      ++place;
      sleep();
    });
    await(place, 1);
    there.reset();
    CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
  });
}

TEST_CASE("a post() that travels is refused", "[detour]") {
  run_here([] {
    idle_thread there;
    struct roundabout {
      motet::thread* by;
      void post(const std::function<void()>& f) const {
        const portal open(*by);
        f();
      }
    } to{&there.itself};
    CHECK_THROWS_AS(spin([&] { teleport(to); }).await(), std::logic_error);
    CHECK_THROWS_AS(spin([&] { const portal open(to); }).await(), std::logic_error);
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

namespace {

/// Goes elsewhere when it goes, and asks there for itself.
struct restless {
  static inline motet::thread* to = nullptr;
  static inline int made = 0;
  static inline const restless* found = nullptr;

  restless() { ++made; }
  ~restless();
};

fiber_local<restless> restless_one;

restless::~restless() {
  const portal open(*to);
  found = &*restless_one;
}

}  // namespace

TEST_CASE("a fiber_local that travels while it goes finds itself", "[detour]") {
  run_here([] {
    idle_thread there;
    restless::to = &there.itself;
    const restless* own = nullptr;
    spin([&] { own = &*restless_one; }).await();
    CHECK(restless::found == own);
    CHECK(restless::made == 1);
  });
}
