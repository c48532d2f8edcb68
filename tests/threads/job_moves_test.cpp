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

/// Blocks the thread that calls it until `condition` is true, or `limit` has passed.
template <typename Condition>
bool comes_true(Condition condition, std::chrono::seconds limit = patience) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > limit) return false;
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
      state->started = true;
      while (!state->go) std::this_thread::sleep_for(50us);
    });
    CHECK(comes_true([&] { return state_->started.load(); }));
  }
  ~busy_worker() { let_go(); }

  void let_go() { state_->go = true; }
  std::thread::id thread() const { return state_->thread; }

 private:
  struct shared {
    std::thread::id thread;
    std::atomic<bool> started{false};
    std::atomic<bool> go{false};
  };
  std::shared_ptr<shared> state_ = std::make_shared<shared>();
};

std::uint64_t executed_by(const thread_pool& pool) {
  std::uint64_t sum = 0;
  for (const auto& worker : pool.stats()) sum += worker.executed;
  return sum;
}

}  // namespace

TEST_CASE("thread_pool gives a job to the idle worker, though the busy one has less to do",
          "[pool]") {
  run_here([] {
    thread_pool pool(2);
    event enough;
    std::atomic<int> waiters{0};
    busy_worker busy(pool);
    // The other worker's load is higher soon: these wait, and take no time of it.
    for (int i = 0; i < 20; ++i) {
      pool.post([&] {
        ++waiters;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiters == 20; }));
    std::atomic<int> finished_jobs{0};
    for (int i = 0; i < 100; ++i) {
      pool.post([&] { ++finished_jobs; });
      if (i % 10 == 0) std::this_thread::sleep_for(1ms);  // so that the other one rests again
    }
    CHECK(comes_true([&] { return finished_jobs == 100; }));
    enough.set();
    busy.let_go();
    pool.drain();
    CHECK(executed_by(pool) == 121);
    for (const auto& worker : pool.stats()) CHECK(worker.pending == 0);
  });
}

TEST_CASE("thread_pool: jobs submitted while a worker waits awake begin side by side",
          "[pool][stress]") {
  const std::size_t workers = GENERATE(2U, 3U);
  thread_pool pool(workers);
  event over;
  for (std::size_t i = 0; i < workers + 2; ++i) pool.post([&] { over.wait(); });  // uneven loads
  const std::size_t rounds = testing::scaled(2'000, 200);
  std::size_t late = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    // Its worker looks for more, or has just gone to rest, when the others are submitted.
    pool.submit([] {}).get();
    std::atomic<std::size_t> started{0};
    std::vector<future<bool>> meetings;
    for (std::size_t i = 0; i < workers; ++i) {
      meetings.push_back(pool.submit([&] {
        ++started;
        return comes_true([&] { return started == workers; });  // blocks its worker
      }));
    }
    for (const auto& meeting : meetings) late += meeting.get() ? 0 : 1;
  }
  over.set();
  pool.drain();
  CHECK(late == 0);
}

TEST_CASE("thread_pool: a worker woken for another one's job, which gets its own, wakes a third",
          "[pool][stress]") {
  thread_pool pool(3);
  strand first(pool), second(pool), third(pool);  // a worker each
  event over;
  for (strand* busier : {&second, &second, &third, &third}) busier->post([&] { over.wait(); });
  const std::size_t rounds = testing::scaled(1'000, 100);
  std::size_t late = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::atomic<bool> blocks{false}, started{false};
    std::atomic<int> ended{0};
    const auto starts = [&] { return started.load(); };
    first.post([&] {
      blocks = true;
      comes_true(starts);
      ++ended;
    });
    comes_true([&] { return blocks.load(); });
    // It waits behind the job that computes, because the first worker has had the fewest jobs.
    pool.post([&] { started = true; });
    // Before the second worker looks for that job, or while it observes it.
    std::this_thread::sleep_for(round % 8 * 20us);
    second.post([&] {
      late += comes_true(starts) ? 0 : 1;
      ++ended;
    });
    comes_true([&] { return ended == 2; });
  }
  over.set();
  pool.drain();
  CHECK(late == 0);
}

TEST_CASE("thread_pool: a worker that often gets a small job takes one that waits too long",
          "[pool]") {
  thread_pool pool(2);
  strand first(pool), second(pool);
  event over, computes;
  for (int i = 0; i < 2; ++i) second.post([&] { over.wait(); });  // so that the shares are even
  std::atomic<bool> computing{false}, started{false};
  const auto starts = [&] { return started.load(); };
  // Computes when it has waited: so this worker counts as one that is waking up.
  first.post([&] {
    computes.wait();
    computing = true;
    comes_true(starts);
  });
  std::this_thread::sleep_for(5ms);
  computes.set();
  comes_true([&] { return computing.load(); });
  pool.post([&] { started = true; });
  const auto end = std::chrono::steady_clock::now() + 500ms;
  while (!started && std::chrono::steady_clock::now() < end) {
    second.post([] {});
    std::this_thread::sleep_for(500us);
  }
  CHECK(started);
  started = true;
  over.set();
  pool.drain();
}

TEST_CASE("thread_pool: queues whose jobs must stay do not hide one that may move", "[pool]") {
  thread_pool pool(4);
  strand strands[] = {strand(pool), strand(pool), strand(pool), strand(pool)};
  event over;
  std::atomic<int> computing{0};
  std::atomic<bool> started{false};
  const auto starts = [&] { return started.load(); };
  for (int worker = 0; worker < 3; ++worker) {
    strands[worker].post([&] {
      ++computing;
      comes_true(starts);
    });
    for (int i = 0; worker < 2 && i < 2; ++i) strands[worker].post([] {});
  }
  strands[3].post([&] { over.wait(); });
  comes_true([&] { return computing == 3; });
  pool.post([&] { started = true; });  // behind the job of the third worker
  CHECK(comes_true(starts, 2s));
  started = true;
  over.set();
  pool.drain();
}

TEST_CASE("thread_pool moves a job from a worker that computes after it has waited", "[pool]") {
  run_here([] {
    thread_pool pool(3);
    std::array<event, 2> go_on;
    std::atomic<int> computing{0};
    std::atomic<bool> end{false};
    std::atomic<int> waiters{0};
    event enough;
    // Two workers compute in jobs that have waited; the third one has two jobs, which wait.
    for (event& gate : go_on) {
      pool.post([&] {
        ++waiters;
        gate.wait();
        ++computing;
        while (!end) std::this_thread::sleep_for(50us);
      });
      const int number = static_cast<int>(&gate - go_on.data()) + 1;
      CHECK(comes_true([&] { return waiters == number; }));
      std::this_thread::sleep_for(5ms);  // or this worker could take the next one, too
    }
    for (int i = 0; i < 2; ++i) {
      pool.post([&] {
        ++waiters;
        enough.wait();
      });
      CHECK(comes_true([&] { return waiters == 3 + i; }));
    }
    std::this_thread::sleep_for(5ms);  // until the workers wait for jobs
    for (event& gate : go_on) gate.set();
    CHECK(comes_true([&] { return computing == 2; }));
    std::atomic<int> finished_jobs{0};
    for (int i = 0; i < 20; ++i) {
      pool.post([&] { ++finished_jobs; });
      CHECK(comes_true([&] { return finished_jobs == i + 1; }));
    }
    end = true;
    enough.set();
    pool.drain();
  });
}

TEST_CASE("thread_pool moves the jobs behind a pinned one once that one has started", "[pool]") {
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
    std::atomic<int> waiters{0};
    for (int i = 0; i < 20; ++i) {
      pool.post([&] {
        ++waiters;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiters == 20; }));
    std::atomic<bool> end{false};
    std::atomic<int> finished_jobs{0};
    staying.post([&] {
      while (!end) std::this_thread::sleep_for(50us);
    });
    for (int i = 0; i < 10; ++i) pool.post([&] { ++finished_jobs; });
    busy.let_go();
    CHECK(comes_true([&] { return finished_jobs == 10; }));
    end = true;
    enough.set();
    pool.drain();
  });
}

TEST_CASE("thread_pool counts a job at its worker even if its captures die elsewhere",
          "[pool][stress]") {
  run_here([] {
    struct traveller {
      explicit traveller(executor target) : home(target) {}
      traveller(traveller&& source) noexcept
          : home(source.home), travels(std::exchange(source.travels, false)) {}
      traveller& operator=(traveller&&) = delete;
      ~traveller() {
        if (travels) teleport(home);
      }
      executor home;
      bool travels = true;
    };
    thread_pool pool(2);
    thread worker = testing::on_threads::idle_thread();
    const auto rounds = testing::scaled(2'000, 100);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (int i = 0; i < 4; ++i) {
        pool.post([&, goes = traveller(worker)] {});
        pool.post([] {});
      }
      pool.drain();
    }
    CHECK(executed_by(pool) == rounds * 8);
    worker.cancel();
  });
}

TEST_CASE("thread_pool: none of many jobs waits behind one that computes", "[pool]") {
  const auto check = [] {
    thread_pool pool(2);
    std::atomic<int> finished_jobs{0};
    std::atomic<bool> go{false};
    {
      // Both workers have a thousand before either gets on.
      const busy_worker first(pool);
      const busy_worker second(pool);
      for (int i = 0; i < 2'000; ++i) {
        pool.post([&, i] {
          while (i == 0 && !go) std::this_thread::sleep_for(20us);
          ++finished_jobs;
        });
      }
    }
    CHECK(comes_true([&] { return finished_jobs == 1'999; }));
    go = true;
    pool.drain();
    CHECK(finished_jobs == 2'000);
  };
  check();
  run_here(check);
}

TEST_CASE("thread_pool never moves a job that is bound to one worker", "[pool]") {
  run_here([] {
    thread_pool pool(2);
    strand first(pool);
    strand second(pool);
    std::thread::id of_first;
    std::thread::id of_second;
    std::atomic<int> reports{0};
    first.post([&] { of_first = std::this_thread::get_id(); });
    second.post([&] { of_second = std::this_thread::get_id(); });
    pool.drain();
    REQUIRE(of_first != of_second);

    busy_worker busy(pool);
    strand& own_strand = busy.thread() == of_first ? first : second;
    std::vector<int> order;
    std::atomic<int> strayed{0};
    for (int i = 0; i < 50; ++i) {
      own_strand.post([&, i] {
        strayed += std::this_thread::get_id() == busy.thread() ? 0 : 1;
        order.push_back(i);
        ++reports;
      });
    }
    std::atomic<int> free_ones{0};
    for (int i = 0; i < 50; ++i) pool.post([&] { ++free_ones; });
    CHECK(comes_true([&] { return free_ones == 50; }));
    CHECK(reports == 0);
    busy.let_go();
    pool.drain();
    CHECK(reports == 50);
    CHECK(strayed == 0);
    CHECK(std::is_sorted(order.begin(), order.end()));
  });
}

TEST_CASE("thread_pool: a job that has moved keeps its promises", "[pool]") {
  run_here([] {
    thread_pool pool(2, "moving", 64);
    const fiber_local<int> context(inherited);
    *context = 7;
    busy_worker busy(pool);
    event enough;
    std::vector<future<void>> results_pending;
    for (int i = 0; i < 10; ++i) results_pending.push_back(pool.submit([&] { enough.wait(); }));
    std::vector<future<int>> results;
    std::atomic<int> held_up{0};
    for (int i = 0; i < 20; ++i) {
      results.push_back(pool.submit([&, i, number = std::make_unique<int>(i)] {
        held_up += std::this_thread::get_id() == busy.thread() ? 1 : 0;
        if (i % 3 == 1) throw testing::first_error();
        if (i % 3 == 2) spin([] { snooze(); });
        return *number + *context - 7;
      }));
    }
    for (int i = 0; i < 20; ++i) {
      auto& result = results[static_cast<std::size_t>(i)];
      if (i % 3 == 1) {
        CHECK_THROWS_AS(result.get(), testing::first_error);
      } else {
        CHECK(result.get() == i);
      }
    }
    CHECK(held_up == 0);
    enough.set();
    busy.let_go();
    pool.drain();
    std::uint64_t failures = 0;
    for (const auto& worker : pool.stats()) failures += worker.failed;
    CHECK(failures == 7);
    // The room of all of them is free again, or these would wait for ever.
    for (int i = 0; i < 64; ++i) pool.post([] {});
  });
}

TEST_CASE("thread_pool::drain() sees each stolen job executed once", "[pool][stress]") {
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(1'000, 20)
                                                           : testing::scaled(5'000, 100));
  thread_pool pool(4);
  strand alone(pool);
  std::size_t count = 0;  // between switchpoints of one worker only
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::atomic<int>> times(100);
    for (std::size_t i = 0; i < times.size(); ++i) {
      pool.post([&, i] {
        ++times[i];
        if (i % 7 == 0) snooze();
        if (i % 25 == 0) std::this_thread::sleep_for(20us);
        if (i % 10 == 0) alone.post([&] { ++count; });
      });
    }
    pool.drain();
    for (const auto& runs : times) REQUIRE(runs == 1);
    REQUIRE(count == static_cast<std::size_t>(10 * (round + 1)));
  }
}

TEST_CASE("thread_pool: jobs in transit when the pool stops are done or cancelled",
          "[pool][stress]") {
  const auto rounds = testing::under_tsan ? testing::scaled(300, 20) : testing::scaled(2'000, 60);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::atomic<std::size_t> finished_jobs{0};
    std::vector<future<void>> results;
    {
      thread_pool pool(3);
      for (int i = 0; i < 60; ++i) {
        results.push_back(pool.submit([&, i] {
          if (i % 20 == 0) std::this_thread::sleep_for(50us);
          ++finished_jobs;
        }));
      }
      if (round % 2 == 0) pool.stop(thread_pool::stop_mode::discard);
    }
    std::size_t undone = 0;
    for (auto& result : results) {
      REQUIRE(result.ready());
      try {
        result.get();
      } catch (const fiber_cancelled&) {
        ++undone;
      }
    }
    REQUIRE(finished_jobs + undone == results.size());
  }
}
