// SPDX-License-Identifier: MIT
// parallel_for(): which elements are called, on which threads, and how it ends early.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <numeric>
#include <ranges>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;

namespace {

void call_each_once(thread_pool& pool, std::size_t count) {
  std::vector<std::atomic<int>> calls(count);
  parallel_for(pool, calls, [](std::atomic<int>& element) { ++element; });
  const auto once = [](const std::atomic<int>& element) { return element == 1; };
  CHECK(std::all_of(calls.begin(), calls.end(), once));
}

/// Returns: the threads on which `f` was called.
template <typename F>
std::set<std::thread::id> threads_of(thread_pool& pool, std::size_t count, F f) {
  std::mutex lock;
  std::set<std::thread::id> threads;
  std::vector<int> elements(count);
  parallel_for(pool, elements, [&](int) {
    f();
    const std::lock_guard guard(lock);
    threads.insert(std::this_thread::get_id());
  });
  return threads;
}

/// A job that has begun and blocks its worker until it is released.
class blocking_job {
 public:
  explicit blocking_job(thread_pool& pool) {
    pool.post([state = state_] {
      state->started = true;
      while (!state->released) std::this_thread::sleep_for(1ms);
    });
    while (!state_->started) std::this_thread::sleep_for(1ms);
  }
  bool released() const noexcept { return state_->released; }
  void release() noexcept { state_->released = true; }

 private:
  struct flags {
    std::atomic<bool> started{false}, released{false};
  };
  std::shared_ptr<flags> state_ = std::make_shared<flags>();
};

}  // namespace

TEST_CASE("parallel_for() calls the function once for each element", "[pool]") {
  thread_pool pool(3);
  for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 1'000U, 100'000U}) {
    CAPTURE(count);
    call_each_once(pool, count);  // this thread has no runtime
    run_here([&] { call_each_once(pool, count); });
    pool.submit([&] { call_each_once(pool, count); }).get();
  }
}

TEST_CASE("parallel_for() accepts arrays and pointers to members", "[pool]") {
  thread_pool pool(2);
  int numbers[100] = {};
  parallel_for(pool, numbers, [](int& element) { ++element; });
  CHECK(std::accumulate(std::begin(numbers), std::end(numbers), 0) == 100);
  struct counter {
    std::atomic<int> count{0};
    void add() { ++count; }
  };
  std::vector<counter> counters(10);
  parallel_for(pool, counters, &counter::add);
  CHECK(std::all_of(counters.begin(), counters.end(), [](auto& it) { return it.count == 1; }));
}

TEST_CASE("parallel_for() shares the elements with all workers of the pool", "[pool]") {
  std::atomic<int> present{0};
  thread_pool pool(3);
  const auto await_others = [&] {
    for (++present; present < 3;) std::this_thread::sleep_for(50us);
  };
  CHECK(threads_of(pool, 3, await_others).size() == 3);
}

TEST_CASE("parallel_for(): a worker that calls it takes part", "[pool]") {
  thread_pool pool(1);
  const auto own = pool.submit([] { return std::this_thread::get_id(); }).get();
  CHECK(pool.submit([&] { return threads_of(pool, 10, [] {}); }).get() == std::set{own});
  thread_pool bounded(2, "bounded", 1);
  CHECK(bounded.submit([&] { return threads_of(bounded, 10, [] {}).size(); }).get() >= 1);
}

TEST_CASE("parallel_for() can be called by the function of another one", "[pool]") {
  thread_pool pool(2);
  std::atomic<int> calls{0};
  std::vector<int> elements(10);
  parallel_for(pool, elements, [&](int) { parallel_for(pool, elements, [&](int) { ++calls; }); });
  CHECK(calls == 100);
}

TEST_CASE("parallel_for() does not wait for a worker that is busy", "[pool]") {
  thread_pool pool(2);
  blocking_job job(pool);
  call_each_once(pool, 1'000);
  CHECK_FALSE(job.released());
  job.release();
}

TEST_CASE("parallel_for() throws the first failure once the other calls have ended", "[pool]") {
  thread_pool pool(3);
  std::atomic<int> calls{0}, ended{0};
  std::vector<int> elements(1'000);
  std::iota(elements.begin(), elements.end(), 0);
  CHECK_THROWS_WITH(run_here([&] {
                      parallel_for(pool, elements, [&](int element) {
                        ++calls;
                        const testing::at_exit end([&] { ++ended; });
                        if (element == 0) throw std::runtime_error("the first element");
                        sleep();
                      });
                    }),
                    "the first element");
  CHECK(calls == ended);
  CHECK(calls <= 3);
}

TEST_CASE("parallel_for() throws the failure of a fiber that the function has spawned", "[pool]") {
  thread_pool pool(2);
  std::vector<int> elements(10);
  const auto fail_later = [&](int) {
    spin([] { throw std::runtime_error("a child"); });
    snooze();
  };
  CHECK_THROWS_WITH(parallel_for(pool, elements, fail_later), "a child");
  CHECK_THROWS_WITH(pool.submit([&] { parallel_for(pool, elements, fail_later); }).get(),
                    "a child");
}

TEST_CASE("parallel_for() ends when the fiber that calls it is interrupted", "[pool]") {
  thread_pool pool(2);
  std::atomic<int> calls{0}, ended{0};
  run_here([&] {
    std::vector<int> elements(100);
    const bool over = move_on_after(20ms, [&] {
      parallel_for(pool, elements, [&](int) {
        ++calls;
        const testing::at_exit end([&] { ++ended; });
        sleep();
      });
    });
    CHECK_FALSE(over);
    CHECK(calls == ended);
  });
}

TEST_CASE("parallel_for() throws executor_stopped if the pool has stopped", "[pool]") {
  std::vector<int> elements(10);
  thread_pool stopped(1);
  stopped.stop();
  CHECK_THROWS_AS(parallel_for(stopped, elements, [](int) {}), executor_stopped);
}

TEST_CASE("parallel_for() accepts views and constant ranges", "[pool]") {
  thread_pool pool(2);
  std::atomic<std::size_t> sum{0};
  parallel_for(pool, std::views::iota(std::size_t{0}, std::size_t{1'000}),
               [&](std::size_t number) { sum += number; });
  CHECK(sum == 499'500);
  const std::vector<int> numbers(1'000, 2);
  parallel_for(pool, numbers, [&](const int& number) { sum += static_cast<std::size_t>(number); });
  CHECK(sum == 501'500);
  const auto endless = std::views::iota(std::size_t{0}, std::numeric_limits<std::size_t>::max());
  CHECK_THROWS_AS(parallel_for(pool, endless, [](std::size_t) {}), std::length_error);
}

TEST_CASE("parallel_for() returns only when no call runs", "[pool]") {
  thread_pool pool(3);
  for (std::size_t round = 0; round < testing::scaled(20'000, 1'000); ++round) {
    std::vector<int> elements(7);
    std::atomic<int> running{0};
    const auto compute = [&](int& element) {
      ++running;
      for (int i = 0; i < 100; ++i) element += i;
      --running;
    };
    parallel_for(pool, elements, compute);
    REQUIRE(running == 0);
    CHECK_THROWS_AS(parallel_for(pool, elements,
                                 [&](int& element) {
                                   compute(element);
                                   throw std::runtime_error("each");
                                 }),
                    std::runtime_error);
    REQUIRE(running == 0);
  }
}

TEST_CASE("parallel_for() waits for the fibers that the function has spawned", "[pool]") {
  thread_pool pool(2);
  std::vector<int> elements(10);
  std::atomic<int> ended{0};
  const auto spawn = [&](int& element) {
    spin([&] {
      const testing::at_exit end([&] {
        ++element;
        ++ended;
      });
      sleep();
    });
    snooze();
  };
  parallel_for(pool, elements, spawn);
  CHECK(ended == 10);
  pool.submit([&] { parallel_for(pool, elements, spawn); }).get();
  CHECK(ended == 20);
}

TEST_CASE("parallel_for() inherits the caller's fiber_locals", "[pool]") {
  static fiber_local<int> tag(inherited);
  run_here([] {
    thread_pool pool(2);
    *tag = 7;
    std::vector<int> elements(10);
    parallel_for(pool, elements, [](int& element) { element = *tag; });
    CHECK(elements == std::vector<int>(10, 7));
  });
}

TEST_CASE("parallel_for() throws fiber_cancelled if the pool discards its jobs", "[pool]") {
  thread_pool pool(1);
  blocking_job job(pool);
  std::vector<int> elements(10);
  std::thread stopper([&] {
    while (pool.stats()[0].pending < 2) std::this_thread::sleep_for(1ms);
    std::thread discarder([&] { pool.stop(thread_pool::stop_mode::discard); });
    std::this_thread::sleep_for(20ms);
    job.release();
    discarder.join();
  });
  CHECK_THROWS_AS(parallel_for(pool, elements, [](int) {}), fiber_cancelled);
  stopper.join();
}
