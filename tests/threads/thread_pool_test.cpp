// SPDX-License-Identifier: MIT
// Pools of threads: who gets a job, what becomes of it, and how a pool ends.
#include <dirent.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::first_error;
using testing::run_here;
using testing::words;

namespace {

/// Blocks the whole thread, as a library that knows no fibers would.
void block(std::chrono::microseconds length) {
  std::this_thread::sleep_for(length);
}

/// Returns: how long `work()` takes where nothing else disturbs it.
template <typename F>
std::chrono::steady_clock::duration best_of_three(F work) {
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
  return best;
}

std::size_t threads_of_process() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] == '.' ? 0 : 1;
  ::closedir(directory);
  return count;
}

std::size_t pending_in(const thread_pool& pool) {
  std::size_t sum = 0;
  for (const auto& worker : pool.stats()) sum += worker.pending;
  return sum;
}

/// Spins a child that fails when it is destroyed.
struct failing_at_the_end {
  failing_at_the_end() = default;
  failing_at_the_end(failing_at_the_end&& source) noexcept
      : armed(std::exchange(source.armed, false)) {}
  ~failing_at_the_end() {
    if (!armed) return;
    spin([] {
      shield([] { snooze(); });
      throw first_error();
    });
    snooze();
  }
  bool armed = true;
};

}  // namespace

TEST_CASE("thread_pool::submit() returns a future of the job's value or exception", "[pool]") {
  const auto check = [] {
    thread_pool pool(2);
    CHECK(pool.submit([x = 2] { return x * 2; }).get() == 4);
    pool.submit([] {}).get();
    CHECK_THROWS_AS(pool.submit([] { throw first_error(); }).get(), first_error);
    auto pointer = pool.submit(
        [input = std::make_unique<int>(6)] { return std::make_unique<int>(*input + 1); });
    CHECK(*std::move(pointer).get() == 7);
    std::atomic<bool> ran{false};
    pool.post([&] { ran = true; });
    pool.drain();
    CHECK(ran);
  };
  check();
  run_here(check);
}

TEST_CASE("thread_pool: other fibers run while one waits for a job", "[pool][real]") {
  run_here([] {
    thread_pool pool(1);
    bool finished = false;
    auto waiter = spin([&] {
      pool.submit([] { block(5ms); }).get();
      finished = true;
    });
    int turns = 0;
    while (!finished) {
      ++turns;
      snooze();
    }
    CHECK(turns > 10);
  });
}

TEST_CASE("thread_pool has exactly the requested threads, and they have its name", "[pool][real]") {
  CHECK_THROWS_AS(thread_pool(0), std::invalid_argument);
  CHECK_THROWS_AS(thread_pool(1, "none", 0), std::invalid_argument);
  const std::size_t count_before = threads_of_process();
  {
    thread_pool pool(4, "a name that is too long");
    const auto workers = [&] {
      std::set<std::string> names;
      for (int i = 0; i < 4; ++i) {
        names.insert(pool.submit([] {
                           std::array<char, 16> name{};
                           ::pthread_getname_np(::pthread_self(), name.data(), name.size());
                           return std::string(name.data());
                         })
                         .get());
      }
      return names;
    };
    for (const std::string& name : workers()) CHECK(name.starts_with("a name that i"));
    if (testing::on_sim())
      CHECK(threads_of_process() == count_before + 4);  // a ring may have its own
  }
  // The kernel lists a thread for a moment longer than somebody can join it.
  for (int i = 0; i < 100 && threads_of_process() > count_before; ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(threads_of_process() <= count_before);
}

TEST_CASE("thread_pool runs other jobs while one waits", "[pool][real]") {
  thread_pool pool(1);
  channel<int> requests(unbounded);
  auto first = pool.submit([&] { return requests.pop().value(); });
  auto second = pool.submit([&] {
    requests.push(3);
    return 1;
  });
  CHECK(second.get() == 1);
  CHECK(first.get() == 3);
}

TEST_CASE("thread_pool: a long job delays nothing while another worker is idle", "[pool][real]") {
  const auto check = [] {
    thread_pool pool(2);
    std::atomic<bool> go{false};
    auto slow = pool.submit([&] {
      while (!go) block(100us);
    });
    const auto begin = std::chrono::steady_clock::now();
    // One that came to stand behind the long one would never end.
    for (int i = 0; i < 50; ++i) CHECK(pool.submit([i] { return i; }).get() == i);
    INFO("50 jobs took " << (std::chrono::steady_clock::now() - begin) / 1us << " us");
    CHECK_FALSE(slow.ready());
    go = true;
    slow.get();
  };
  check();
  run_here(check);
}

TEST_CASE("thread_pool: only one of several concurrent submissions gets an idle worker",
          "[pool][real]") {
  run_here([] {
    constexpr std::size_t workers = 4;
    thread_pool pool(workers);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::thread> givers;
      std::vector<future<std::thread::id>> thread_ids(workers);
      std::atomic<std::size_t> busy{0};
      for (std::size_t i = 0; i < workers; ++i) {
        givers.emplace_back([&, i] {
          thread_ids[i] = pool.submit([&] {
            ++busy;
            while (busy < workers) block(20us);
            return std::this_thread::get_id();
          });
        });
      }
      for (auto& thread : givers) thread.join();
      std::set<std::thread::id> distinct;
      for (auto& result : thread_ids) distinct.insert(result.get());
      CHECK(distinct.size() == workers);
    }
  });
}

TEST_CASE("thread_pool::stats() has dropped a job from the load when its result is seen",
          "[pool][real]") {
  thread_pool pool(3);
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(10'000, 300)
                                                           : testing::scaled(100'000, 3'000));
  for (int i = 0; i < rounds; ++i) {
    pool.submit([] {}).get();
    REQUIRE(pending_in(pool) == 0);
  }
}

TEST_CASE("thread_pool: neither exceptions nor dropped results harm a worker", "[pool][real]") {
  std::set<std::thread::id> ids_before;
  std::set<std::thread::id> ids_after;
  std::mutex guarding;
  thread_pool pool(2);
  const auto note = [&](std::set<std::thread::id>& target) {
    const std::lock_guard guard(guarding);
    target.insert(std::this_thread::get_id());
  };
  std::atomic<int> starts{0};
  for (int i = 0; i < 2; ++i) {  // both workers: each waits for the other
    pool.post([&] {
      note(ids_before);
      ++starts;
      while (starts < 2) std::this_thread::sleep_for(20us);
    });
  }
  pool.drain();
  std::vector<future<int>> results;
  for (int i = 0; i < 1'000; ++i) {
    results.push_back(pool.submit([&, i] {
      note(ids_after);
      if (i % 10 < 3) throw first_error();
      return i;
    }));
  }
  for (int i = 0; i < 1'000; ++i) {
    if (i % 10 < 3) {
      CHECK_THROWS_AS(results[static_cast<std::size_t>(i)].get(), first_error);
    } else {
      CHECK(results[static_cast<std::size_t>(i)].get() == i);
    }
  }
  for (int i = 0; i < 100; ++i) pool.submit([] { return std::string("nobody asks"); });
  results.clear();
  for (int i = 0; i < 100; ++i) {
    results.push_back(pool.submit([&, i] {
      note(ids_after);
      return i;
    }));
  }
  for (int i = 0; i < 100; ++i) CHECK(results[static_cast<std::size_t>(i)].get() == i);
  pool.drain();  // nobody has waited for the abandoned ones
  CHECK(std::includes(ids_before.begin(), ids_before.end(), ids_after.begin(), ids_after.end()));
  std::uint64_t failures = 0;
  std::uint64_t executed = 0;
  for (const auto& worker : pool.stats()) {
    failures += worker.failed;
    executed += worker.executed;
  }
  CHECK(failures == 300);
  CHECK(executed == 1'202);
}

TEST_CASE("thread_pool: the future of a cancelled job throws fiber_cancelled", "[pool][real]") {
  run(testing::poked<first_error>(testing::quiet()), [] {
    thread_pool pool(1);
    auto job = pool.submit([] {
      current().cancel("enough");
      sleep();
    });
    CHECK_THROWS_AS(job.get(), fiber_cancelled);
    CHECK(pool.submit([] { return 1; }).get() == 1);
    // Nor does one end its worker.
    pool.submit([] { current().parent().cancel(); }).get();
    pool.submit([] { current().parent().raise(first_error()); }).get();
    CHECK(pool.submit([] { return 1; }).get() == 1);
  });
}

TEST_CASE("thread_pool: a job ends when the fibers it has spun have ended", "[pool][real]") {
  thread_pool pool(2);
  std::atomic<bool> cleaned{false};
  pool.submit([&] {
        spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(1ms);
            cleaned = true;
          }
        });
        snooze();
      })
      .get();
  CHECK(cleaned);
  auto failing = pool.submit([] {
    spin([] { throw first_error(); });
    shield([] { snooze(); });
    return 1;
  });
  CHECK_THROWS_AS(failing.get(), first_error);
}

TEST_CASE("thread_pool::drain() waits until all jobs are done, and can be called again",
          "[pool][real]") {
  words log;
  std::mutex guarding;
  const auto tell = [&](const std::string& word) {
    const std::lock_guard guard(guarding);
    log.push_back(word);
  };
  thread_pool pool(3);
  pool.drain();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      pool.post([&, i] {
        if (i == 2) sleep_for(2ms);
        tell("job");
      });
    }
    pool.drain();
    tell("go");
  }
  CHECK(log == words{"job", "job", "job", "go", "job", "job", "job", "go"});
}

TEST_CASE("thread_pool::drain() waits for the jobs that jobs submit", "[pool]") {
  run_here([] {
    thread_pool pool(3);
    const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(500, 30)
                                                             : testing::scaled(10'000, 300));
    std::atomic<int> finished_jobs{0};
    std::function<void(int)> breed = [&](int generations) {
      if (generations > 0) pool.post([&, generations] { breed(generations - 1); });
      ++finished_jobs;
    };
    for (int i = 1; i <= rounds; ++i) {
      pool.post([&] { breed(5); });
      pool.drain();
      REQUIRE(finished_jobs == 6 * i);
    }
  });
}

TEST_CASE("thread_pool: a job that waits for its whole pool is refused", "[pool][real]") {
  thread_pool pool(1);
  CHECK_THROWS_AS(pool.submit([&] { pool.drain(); }).get(), std::logic_error);
  CHECK_THROWS_AS(pool.submit([&] { pool.stop(); }).get(), std::logic_error);
}

TEST_CASE("thread_pool::stop() lets queued jobs end, and later ones are refused", "[pool][real]") {
  thread_pool pool(1);
  std::vector<future<int>> results;
  for (int i = 0; i < 10; ++i) {
    results.push_back(pool.submit([i] {
      block(200us);
      return i;
    }));
  }
  pool.stop();
  for (int i = 0; i < 10; ++i) CHECK(results[static_cast<std::size_t>(i)].get() == i);
  CHECK_THROWS_AS(pool.submit([] {}), executor_stopped);
  CHECK_THROWS_AS(pool.post([] {}), executor_stopped);
  pool.stop();
  pool.stop(thread_pool::stop_mode::discard);
  pool.drain();
}

TEST_CASE("thread_pool::stop(discard) cancels the jobs that have not started", "[pool][real]") {
  thread_pool pool(1);
  std::atomic<bool> started{false};
  std::atomic<bool> go{false};
  std::vector<future<int>> results;
  for (int i = 0; i < 10; ++i) {
    results.push_back(pool.submit([&, i] {
      started = true;
      while (!go) block(50us);
      return i;
    }));
  }
  while (!started) block(50us);
  std::thread later([&] {
    try {
      for (;; block(50us)) pool.post([] {});
    } catch (const executor_stopped&) {
    }
    block(1ms);
    go = true;
  });
  pool.stop(thread_pool::stop_mode::discard);
  later.join();
  CHECK(results[0].get() == 0);
  for (std::size_t i = 1; i < 10; ++i) CHECK_THROWS_AS(results[i].get(), fiber_cancelled);
}

TEST_CASE("thread_pool::stop() leaves the pool stopping when it is interrupted", "[pool]") {
  run_here([] {
    thread_pool pool(1);
    std::atomic<bool> go{false};
    auto job = pool.submit([&] {
      while (!go) sleep_for(100us);
      return 1;
    });
    auto stopper = spin([&] { pool.stop(); });
    snooze();
    stopper.raise(first_error());
    CHECK_THROWS_AS(stopper.await(), first_error);
    CHECK_THROWS_AS(pool.submit([] {}), executor_stopped);
    go = true;
    CHECK(job.get() == 1);
    pool.stop();
  });
}

TEST_CASE("thread_pool::submit() waits while a bounded pool is full", "[pool]") {
  run_here([] {
    thread_pool pool(2, "bounded", 8);
    std::size_t peak = 0;
    bool ticked = false;
    auto ticker = spin([&] {
      snooze();
      ticked = true;
    });
    for (int i = 0; i < 100; ++i) {
      pool.post([] { block(50us); });
      peak = std::max(peak, pending_in(pool));
    }
    CHECK(peak <= 8);
    CHECK(ticked);
    ticker.await();
    pool.drain();
  });
  thread_pool pool(1, "bounded", 1);
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) pool.post([&] { ++ran; });  // a plain thread blocks
  pool.stop();
  CHECK(ran == 20);
}

TEST_CASE("thread_pool::submit() can be interrupted while it waits, and submits nothing",
          "[pool]") {
  run_here([] {
    thread_pool pool(1, "bounded", 1);
    std::atomic<bool> go{false};
    std::atomic<int> ran{0};
    pool.post([&] {
      while (!go) sleep_for(100us);
    });
    auto giver = spin([&] { pool.post([&] { ++ran; }); });
    snooze();
    giver.raise(first_error());
    CHECK_THROWS_AS(giver.await(), first_error);
    go = true;
    pool.post([&] { ran += 10; });
    pool.drain();
    CHECK(ran == 10);
  });
}

TEST_CASE("thread_pool destroyed in one of its own jobs ends by itself", "[pool][real]") {
  std::atomic<bool> finished{false};
  auto pool = std::make_shared<thread_pool>(2);
  pool->post([pool, &finished]() mutable {
    pool.reset();
    finished = true;
  });
  pool.reset();
  while (!finished) block(50us);
}

TEST_CASE("thread_pool: a job may submit one that destroys the pool", "[pool][stress][real]") {
  const auto pools = testing::scaled(500, 100);
  for (std::size_t i = 0; i < pools; ++i) {
    std::atomic<bool> finished{false};
    auto pool = std::make_shared<thread_pool>(2);
    thread_pool& first = *pool;
    first.post([pool = std::move(pool), &finished]() mutable {
      thread_pool& second = *pool;
      second.post([last = std::move(pool), &finished]() mutable {
        last.reset();
        finished = true;
      });
    });
    while (!finished) block(50us);
  }
}

TEST_CASE("thread_pool: pools are created, used and destroyed one after the other",
          "[pool][stress][real]") {
  const auto pools = testing::under_tsan ? testing::scaled(300, 30) : testing::scaled(2'000, 200);
  std::atomic<std::size_t> ran{0};
  for (std::size_t i = 0; i < pools; ++i) {
    thread_pool pool(2);
    for (int job = 0; job < 50; ++job) pool.post([&] { ++ran; });
    if (i % 4 == 0) pool.submit([] { throw first_error(); });
  }
  CHECK(ran == 50 * pools);
}

TEST_CASE("thread_pool loses no job of eight submitting threads", "[pool][stress][real]") {
  const auto per_thread =
      testing::under_tsan ? testing::scaled(10'000, 500) : testing::scaled(100'000, 10'000);
  thread_pool pool(2);
  std::array<std::atomic<std::uint64_t>, 8> sums{};
  std::vector<std::thread> givers;
  for (auto& sum : sums) {
    givers.emplace_back([&] {
      for (std::size_t i = 1; i <= per_thread; ++i) {
        pool.post([&sum, i] { sum.fetch_add(i, std::memory_order_relaxed); });
      }
    });
  }
  for (auto& giver : givers) giver.join();
  pool.drain();
  for (auto& sum : sums) CHECK(sum == per_thread * (per_thread + 1) / 2);
}

TEST_CASE("thread_pool: jobs fill a map together, and others read it", "[pool]") {
  run_here([] {
    thread_pool pool(3);
    std::map<int, std::string> squares;
    shared_mutex guarding;
    std::vector<future<void>> inserted;
    for (int i = 0; i < 100; ++i) {
      inserted.push_back(pool.submit([&, i] {
        const std::lock_guard guard(guarding);
        squares[i] = std::to_string(i);
      }));
    }
    for (auto& result : inserted) result.get();
    std::vector<future<bool>> lookups;
    for (int i = 0; i < 100; ++i) {
      lookups.push_back(pool.submit([&, i] {
        const std::shared_lock guard(guarding);
        return squares.at(i) == std::to_string(i);
      }));
    }
    for (auto& lookup : lookups) CHECK(lookup.get());
  });
}

TEST_CASE("thread_pool: idle workers do not hide a deadlock", "[pool][deadlock][real]") {
  if (testing::on_sim()) return;  // it cannot look again without time running away
  run_here([] {
    thread_pool pool(2);
    channel<int> never;
    auto stuck = pool.submit([&] { never.pop(); });
    CHECK_THROWS_AS(stuck.get(), deadlock);
    never.close();
    stuck.get();
  });
}

TEST_CASE("thread_pool: a worker that may still wake a fiber is not idle",
          "[pool][deadlock][real]") {
  run_here([] {
    thread_pool pool(2);
    auto slow = pool.submit([] {
      sleep_for(testing::on_sim() ? 1ms : 300ms);
      return 1;
    });
    CHECK(slow.get() == 1);
    auto busy = pool.submit([] {
      block(300ms);
      return 2;
    });
    CHECK(busy.get() == 2);
  });
}

TEST_CASE("thread_pool spreads jobs that keep their threads busy evenly over many workers",
          "[pool][real]") {
  constexpr std::size_t workers = 4;
  constexpr std::size_t each_has = 4;
  thread_pool pool(workers);
  std::atomic<bool> go{false};
  std::atomic<std::size_t> starts{0};
  const auto post = [&] {
    pool.post([&] {
      ++starts;
      while (!go) block(100us);
    });
  };
  // Each begins one, and no more while that blocks it; until it does, it may take another's.
  for (std::size_t i = 0; i < workers; ++i) post();
  for (int waited = 0; starts < workers && waited < 100'000; ++waited) block(100us);
  for (std::size_t i = workers; i < each_has * workers; ++i) post();
  for (const auto& worker : pool.stats()) CHECK(worker.pending == each_has);
  CHECK(starts == workers);
  go = true;
  pool.drain();
  std::uint64_t executed = 0;  // by whom depends: those that were quicker took some of the others'
  for (const auto& worker : pool.stats()) executed += worker.executed;
  CHECK(executed == each_has * workers);
}

TEST_CASE("thread_pool full of blocking work delays no deadline elsewhere", "[pool][real]") {
  if (testing::on_sim()) return;
  run_here([] {
    thread_pool pool(2);
    std::atomic<bool> go{false};
    for (int i = 0; i < 8; ++i) {
      pool.post([&] {
        while (!go) block(100us);
      });
    }
    const auto best =
        best_of_three([] { CHECK_THROWS_AS(with_timeout(20ms, [] { sleep(); }), timed_out); });
    CHECK(best >= 20ms);
    CHECK(best < 50ms);
    CHECK(pending_in(pool) == 8);
    go = true;
    pool.drain();
  });
}

TEST_CASE("thread_pool: a waiting caller uses no CPU time", "[pool][real]") {
  if (testing::on_sim()) return;
  const auto cpu_of_this_thread = [] {
    timespec cpu_time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_time);
    return std::chrono::seconds(cpu_time.tv_sec) + std::chrono::nanoseconds(cpu_time.tv_nsec);
  };
  const auto length = std::chrono::milliseconds(testing::scaled(1'000, 200));
  const auto wait_for_it = [&] {
    thread_pool pool(1);
    pool.post([&] { block(length); });
    const auto start = cpu_of_this_thread();
    pool.drain();
    CHECK(cpu_of_this_thread() - start < 20ms);
  };
  wait_for_it();
  run_here(wait_for_it);
}

TEST_CASE("thread_pool::stop() waits for all workers, whatever on_unhandled does", "[pool][real]") {
  options config = testing::quiet();
  std::atomic<int> notices{0};
  config.on_unhandled = [&](const std::exception_ptr&) { ++notices; };
  run(config, [&] {
    std::atomic<bool> finished{false};
    {
      thread_pool pool(2);
      auto odd = pool.submit([payload = failing_at_the_end()] { return 1; });
      pool.post([&] {
        block(2ms);
        finished = true;
      });
      pool.stop();
      CHECK(finished);
      CHECK(odd.get() == 1);
    }
    CHECK(notices == 1);
  });
}

TEST_CASE("thread_pool: jobs may query their pool while it is destroyed", "[pool][stress][real]") {
  const auto rounds = testing::under_tsan ? testing::scaled(200, 10) : testing::scaled(2'000, 50);
  std::atomic<std::size_t> refused{0};
  for (std::size_t i = 0; i < rounds; ++i) {
    thread_pool pool(3);
    for (int job = 0; job < 6; ++job) {
      pool.post([&] {
        for (int look = 0; look < 5; ++look) {
          snooze();
          try {
            pool.drain();
          } catch (const std::logic_error&) {
            ++refused;
          }
          try {
            pool.post([] {});
          } catch (const executor_stopped&) {
          }
        }
      });
    }
  }
  CHECK(refused == 30 * rounds);
}

TEST_CASE("thread_pool: a failed job's exception has its origin()", "[pool][origin][real]") {
  thread_pool pool(1);
  auto result = pool.submit([] { throw first_error(); });
  try {
    result.get();
    FAIL("it should throw");
  } catch (const first_error&) {
    const auto source = origin(std::current_exception());
    REQUIRE(source.has_value());
    CHECK(std::string(source->site.file).find("pool_test") != std::string::npos);
  }
}

TEST_CASE("thread_pool::submit() that waits for room throws when the pool stops", "[pool]") {
  run_here([] {
    thread_pool pool(1, "bounded", 1);
    std::atomic<bool> go{false};
    pool.post([&] {
      while (!go) sleep_for(100us);
    });
    auto giver = spin([&] { pool.post([] {}); });
    snooze();
    auto stopper = spin([&] { pool.stop(); });
    snooze();
    go = true;
    CHECK_THROWS_AS(giver.await(), executor_stopped);
    stopper.await();
  });
}
