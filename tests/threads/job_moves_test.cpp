// SPDX-License-Identifier: MIT
// Jobs that a worker has not begun: a worker that has nothing to run takes them, but for those that
// belong to one worker.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/threads/portal.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "idle_thread.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;

namespace {

constexpr auto patience = 20s;

/// Blocks the thread that calls it until `condition` is true, or patience is at an end.
template <typename Condition>
bool comes_true(Condition condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > patience) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}

/// A worker that computes, or blocks, until the object goes.
class busy_worker {
 public:
  explicit busy_worker(thread_pool& pool) {
    pool.post([state = state_] {
      state->thread = std::this_thread::get_id();
      state->begun = true;
      while (!state->go) std::this_thread::sleep_for(50us);
    });
    CHECK(comes_true([&] { return state_->begun.load(); }));
  }
  ~busy_worker() { let_go(); }

  void let_go() { state_->go = true; }
  std::thread::id thread() const { return state_->thread; }

 private:
  struct shared {
    std::thread::id thread;
    std::atomic<bool> begun{false};
    std::atomic<bool> go{false};
  };
  std::shared_ptr<shared> state_ = std::make_shared<shared>();
};

std::uint64_t executed_by(const thread_pool& pool) {
  std::uint64_t sum = 0;
  for (const auto& each : pool.stats()) sum += each.executed;
  return sum;
}

}  // namespace

TEST_CASE("a job goes to the worker that rests, though the one that computes has less to do",
          "[pool]") {
  run_here([] {
    thread_pool pool(2);
    event enough;
    std::atomic<int> waiting{0};
    busy_worker busy(pool);
    // The other worker's load is higher soon: these wait, and take no time of it.
    for (int i = 0; i < 20; ++i) {
      pool.post([&] {
        ++waiting;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiting == 20; }));
    std::atomic<int> done{0};
    for (int i = 0; i < 100; ++i) {
      pool.post([&] { ++done; });
      if (i % 10 == 0) std::this_thread::sleep_for(1ms);  // so that the other one rests again
    }
    CHECK(comes_true([&] { return done == 100; }));
    enough.set();
    busy.let_go();
    pool.drain();
    CHECK(executed_by(pool) == 121);
    for (const auto& each : pool.stats()) CHECK(each.pending == 0);
  });
}

TEST_CASE("a job moves from a worker whose job computes after it has waited", "[pool]") {
  run_here([] {
    thread_pool pool(3);
    std::array<event, 2> go_on;
    std::atomic<int> computing{0};
    std::atomic<bool> end{false};
    std::atomic<int> waiting{0};
    event enough;
    // Two workers compute in jobs that have waited; the third one has two jobs, which wait.
    for (event& each : go_on) {
      pool.post([&] {
        ++waiting;
        each.wait();
        ++computing;
        while (!end) std::this_thread::sleep_for(50us);
      });
      const int begun = static_cast<int>(&each - go_on.data()) + 1;
      CHECK(comes_true([&] { return waiting == begun; }));
      std::this_thread::sleep_for(5ms);  // or this worker could take the next one, too
    }
    for (int i = 0; i < 2; ++i) {
      pool.post([&] {
        ++waiting;
        enough.wait();
      });
      CHECK(comes_true([&] { return waiting == 3 + i; }));
    }
    std::this_thread::sleep_for(5ms);  // until the workers wait for jobs
    for (event& each : go_on) each.set();
    CHECK(comes_true([&] { return computing == 2; }));
    std::atomic<int> done{0};
    for (int i = 0; i < 20; ++i) {
      pool.post([&] { ++done; });
      CHECK(comes_true([&] { return done == i + 1; }));
    }
    end = true;
    enough.set();
    pool.drain();
  });
}

TEST_CASE("what lies behind a job that stays moves once that one has begun", "[pool]") {
  run_here([] {
    thread_pool pool(2);
    strand first(pool);
    strand second(pool);
    std::thread::id of_first;
    first.post([&] { of_first = std::this_thread::get_id(); });
    pool.drain();
    busy_worker busy(pool);
    strand& staying = busy.thread() == of_first ? first : second;
    event enough;
    std::atomic<int> waiting{0};
    for (int i = 0; i < 20; ++i) {
      pool.post([&] {
        ++waiting;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiting == 20; }));
    std::atomic<bool> end{false};
    std::atomic<int> done{0};
    staying.post([&] {
      while (!end) std::this_thread::sleep_for(50us);
    });
    for (int i = 0; i < 10; ++i) pool.post([&] { ++done; });
    busy.let_go();
    CHECK(comes_true([&] { return done == 10; }));
    end = true;
    enough.set();
    pool.drain();
  });
}

TEST_CASE("a job whose captures go elsewhere to be destroyed is counted where it was done",
          "[pool][stress]") {
  run_here([] {
    struct traveller {
      explicit traveller(executor to) : where(to) {}
      traveller(traveller&& from) noexcept
          : where(from.where), travels(std::exchange(from.travels, false)) {}
      traveller& operator=(traveller&&) = delete;
      ~traveller() {
        if (travels) teleport(where);
      }
      executor where;
      bool travels = true;
    };
    thread_pool pool(2);
    thread there = testing::on_threads::idle_thread();
    const auto rounds = testing::scaled(2'000, 100);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (int i = 0; i < 4; ++i) {
        pool.post([&, goes = traveller(there)] {});
        pool.post([] {});
      }
      pool.drain();
    }
    CHECK(executed_by(pool) == rounds * 8);
    there.cancel();
  });
}

TEST_CASE("of many jobs behind one that computes none waits for it", "[pool]") {
  const auto check = [] {
    thread_pool pool(2);
    std::atomic<int> done{0};
    std::atomic<bool> go{false};
    {
      // Both workers have a thousand before either gets on.
      const busy_worker one(pool);
      const busy_worker other(pool);
      for (int i = 0; i < 2'000; ++i) {
        pool.post([&, i] {
          while (i == 0 && !go) std::this_thread::sleep_for(20us);
          ++done;
        });
      }
    }
    CHECK(comes_true([&] { return done == 1'999; }));
    go = true;
    pool.drain();
    CHECK(done == 2'000);
  };
  check();
  run_here(check);
}

TEST_CASE("what belongs to one worker stays with it", "[pool]") {
  run_here([] {
    thread_pool pool(2);
    strand first(pool);
    strand second(pool);
    std::thread::id of_first;
    std::thread::id of_second;
    std::atomic<int> told{0};
    first.post([&] { of_first = std::this_thread::get_id(); });
    second.post([&] { of_second = std::this_thread::get_id(); });
    pool.drain();
    REQUIRE(of_first != of_second);

    busy_worker busy(pool);
    strand& held = busy.thread() == of_first ? first : second;
    std::vector<int> order;
    std::atomic<int> strayed{0};
    for (int i = 0; i < 50; ++i) {
      held.post([&, i] {
        strayed += std::this_thread::get_id() == busy.thread() ? 0 : 1;
        order.push_back(i);
        ++told;
      });
    }
    std::atomic<int> free_ones{0};
    for (int i = 0; i < 50; ++i) pool.post([&] { ++free_ones; });
    CHECK(comes_true([&] { return free_ones == 50; }));
    CHECK(told == 0);
    busy.let_go();
    pool.drain();
    CHECK(told == 50);
    CHECK(strayed == 0);
    CHECK(std::is_sorted(order.begin(), order.end()));
  });
}

TEST_CASE("a job that has moved keeps its promises", "[pool]") {
  run_here([] {
    thread_pool pool(2, "moving", 64);
    const fiber_local<int> told(inherited);
    *told = 7;
    busy_worker busy(pool);
    event enough;
    std::vector<future<void>> waiting;
    for (int i = 0; i < 10; ++i) waiting.push_back(pool.submit([&] { enough.wait(); }));
    std::vector<future<int>> results;
    std::atomic<int> held_up{0};
    for (int i = 0; i < 20; ++i) {
      results.push_back(pool.submit([&, i, owned = std::make_unique<int>(i)] {
        held_up += std::this_thread::get_id() == busy.thread() ? 1 : 0;
        if (i % 3 == 1) throw testing::first_error();
        if (i % 3 == 2) spin([] { snooze(); });
        return *owned + *told - 7;
      }));
    }
    for (int i = 0; i < 20; ++i) {
      auto& each = results[static_cast<std::size_t>(i)];
      if (i % 3 == 1) {
        CHECK_THROWS_AS(each.get(), testing::first_error);
      } else {
        CHECK(each.get() == i);
      }
    }
    CHECK(held_up == 0);
    enough.set();
    busy.let_go();
    pool.drain();
    std::uint64_t failed = 0;
    for (const auto& each : pool.stats()) failed += each.failed;
    CHECK(failed == 7);
    // The room of all of them is free again, or these would wait for ever.
    for (int i = 0; i < 64; ++i) pool.post([] {});
  });
}

TEST_CASE("workers that take one another's jobs do each once, and drain() sees the last",
          "[pool][stress]") {
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(1'000, 20)
                                                           : testing::scaled(5'000, 100));
  thread_pool pool(4);
  strand alone(pool);
  std::size_t counted = 0;  // between switchpoints of one worker only
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::atomic<int>> times(100);
    for (std::size_t i = 0; i < times.size(); ++i) {
      pool.post([&, i] {
        ++times[i];
        if (i % 7 == 0) snooze();
        if (i % 25 == 0) std::this_thread::sleep_for(20us);
        if (i % 10 == 0) alone.post([&] { ++counted; });
      });
    }
    pool.drain();
    for (const auto& each : times) REQUIRE(each == 1);
    REQUIRE(counted == static_cast<std::size_t>(10 * (round + 1)));
  }
}

TEST_CASE("jobs that are on the move when their pool stops are done, or told to be undone",
          "[pool][stress]") {
  const auto rounds = testing::under_tsan ? testing::scaled(300, 20) : testing::scaled(2'000, 60);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::atomic<std::size_t> done{0};
    std::vector<future<void>> all;
    {
      thread_pool pool(3);
      for (int i = 0; i < 60; ++i) {
        all.push_back(pool.submit([&, i] {
          if (i % 20 == 0) std::this_thread::sleep_for(50us);
          ++done;
        }));
      }
      if (round % 2 == 0) pool.stop(thread_pool::stop_mode::discard);
    }
    std::size_t undone = 0;
    for (auto& each : all) {
      REQUIRE(each.ready());
      try {
        each.get();
      } catch (const fiber_cancelled&) {
        ++undone;
      }
    }
    REQUIRE(done + undone == all.size());
  }
}
