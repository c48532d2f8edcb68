// SPDX-License-Identifier: MIT
// How even the shares of a pool's workers are: a worker that has nothing to begin takes jobs of
// others, but not more than its share, and none of a worker that is only waking up.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <motet/motet.hpp>
#include <motet/threads/portal.hpp>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;

namespace {

/// Blocks the thread that calls it until `condition` is true, or for 20 s.
template <typename Condition>
bool comes_true(Condition condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > 20s) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}

void compute_for(std::chrono::microseconds span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

std::size_t most_pending(const thread_pool& pool) {
  std::size_t peak = 0;
  for (const auto& worker : pool.stats()) peak = std::max(peak, worker.pending);
  return peak;
}

/// Returns: how many of `jobs` jobs, which `give` gives one by one and all of which wait in the
/// end,
///          the fullest worker has; the median of some rounds.
template <typename Give>
std::size_t fullest_share(std::size_t workers, std::size_t jobs, Give give) {
  std::vector<std::size_t> shares;
  for (int round = 0; round < 7; ++round) {
    thread_pool pool(workers);
    pool.drain();
    event enough;
    std::atomic<std::size_t> waiters{0};
    for (std::size_t i = 0; i < jobs; ++i) {
      give(pool, [&] {
        ++waiters;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiters == jobs; }));
    shares.push_back(most_pending(pool));
    enough.set();
    pool.drain();
  }
  std::sort(shares.begin(), shares.end());
  return shares[shares.size() / 2];
}

/// An even share, and half as much again: on a machine with fewer processors than workers a worker
/// that is not running seems to compute.
std::size_t tolerable_share(std::size_t workers, std::size_t jobs) {
  return jobs * 3 / (workers * 2) + 2;
}

/// The time of sim passes at once, so that a worker does not wait for one that is not running.
bool out_of_patience_at_once() {
  return testing::on_sim();
}

}  // namespace

TEST_CASE("thread_pool spreads a burst of waiting jobs evenly", "[pool]") {
  if (out_of_patience_at_once()) return;
  run_here([] {
    for (const std::size_t workers : {2U, 4U, 8U}) {
      for (const std::size_t jobs : {16U, 40U, 1'000U}) {
        const std::size_t share = fullest_share(
            workers, jobs, [](thread_pool& pool, auto job) { pool.post(std::move(job)); });
        CAPTURE(workers, jobs, share);
        CHECK(share <= tolerable_share(workers, jobs));
      }
    }
  });
}

TEST_CASE("thread_pool spreads a trickle of waiting jobs evenly", "[pool]") {
  if (out_of_patience_at_once()) return;
  run_here([] {
    for (const std::size_t workers : {2U, 4U, 8U}) {
      const std::size_t share = fullest_share(workers, 16, [](thread_pool& pool, auto job) {
        pool.post(std::move(job));
        std::this_thread::sleep_for(300us);
      });
      CAPTURE(workers, share);
      CHECK(share <= tolerable_share(workers, 16));
    }
  });
}

TEST_CASE("thread_pool spreads jobs that compute and then wait evenly", "[pool]") {
  if (out_of_patience_at_once()) return;
  run_here([] {
    for (const std::size_t workers : {2U, 4U}) {
      const std::size_t share = fullest_share(workers, 40, [](thread_pool& pool, auto job) {
        pool.post([job = std::move(job)]() mutable {
          compute_for(100us);
          job();
        });
      });
      CAPTURE(workers, share);
      CHECK(share <= tolerable_share(workers, 40) + 10);  // those that compute are to be helped
    }
  });
}

TEST_CASE("thread_pool spreads jobs over all workers in spite of strands", "[pool]") {
  if (out_of_patience_at_once()) return;
  run_here([] {
    thread_pool pool(4);
    event enough;
    std::atomic<int> waiters{0};
    const auto wait = [&] {
      ++waiters;
      enough.wait();
    };
    strand first(pool);
    strand second(pool);
    for (int i = 0; i < 20; ++i) {
      first.post(wait);
      second.post(wait);
      pool.post(wait);
      pool.post(wait);
    }
    CHECK(comes_true([&] { return waiters == 80; }));
    std::size_t least = 80;
    for (const auto& worker : pool.stats()) least = std::min(least, worker.pending);
    CHECK(least >= 5);
    enough.set();
    pool.drain();
  });
}

TEST_CASE("thread_pool: a job does not wait behind one that computes, even if others have fewer",
          "[pool]") {
  run_here([] {
    thread_pool pool(2);
    event enough;
    std::atomic<int> waiters{0};
    std::atomic<std::thread::id> computing{};
    std::atomic<bool> end{false};
    for (int i = 0; i < 40; ++i) {
      pool.post([&] {
        ++waiters;
        enough.wait();
      });
    }
    CHECK(comes_true([&] { return waiters == 40; }));
    pool.post([&] {
      computing = std::this_thread::get_id();
      while (!end) std::this_thread::sleep_for(50us);
    });
    CHECK(comes_true([&] { return computing.load() != std::thread::id(); }));
    std::atomic<int> finished_jobs{0};
    for (int i = 0; i < 30; ++i) pool.post([&] { ++finished_jobs; });
    CHECK(comes_true([&] { return finished_jobs == 30; }));
    end = true;
    enough.set();
    pool.drain();
  });
}

TEST_CASE("thread_pool: a job submitted by one that has waited does not wait for it", "[pool]") {
  run_here([] {
    thread_pool pool(2);
    std::vector<std::chrono::steady_clock::duration> delays;
    for (int round = 0; round < 11; ++round) {
      std::atomic<std::chrono::steady_clock::time_point> begin{};
      std::atomic<bool> begun{false};
      pool.post([&] {
        sleep_for(1ms);
        std::this_thread::sleep_for(1ms);  // until the other worker is idle
        const auto submission = std::chrono::steady_clock::now();
        pool.post([&] {
          begin = std::chrono::steady_clock::now();
          begun = true;
        });
        comes_true([&] { return begun.load(); });
        delays.push_back(begin.load() - submission);
      });
      pool.drain();
    }
    std::sort(delays.begin(), delays.end());
    CHECK(delays[delays.size() / 2] < 2ms);
  });
}

TEST_CASE("thread_pool: a worker keeps the jobs that it submits while no other is idle", "[pool]") {
  run_here([] {
    constexpr std::size_t jobs = 10;
    thread_pool pool(2);
    std::atomic<std::size_t> computing{0};
    std::atomic<bool> other_may_end{false};
    std::atomic<std::size_t> kept{0};
    std::atomic<std::size_t> finished{0};
    pool.post([&] {
      ++computing;
      comes_true([&] { return other_may_end.load(); });
    });
    comes_true([&] { return computing == 1; });
    pool.post([&] {
      ++computing;
      for (std::size_t i = 0; i < jobs; ++i) pool.post([&] { ++finished; });
      kept = most_pending(pool);
      other_may_end = true;
      CHECK(comes_true([&] { return finished == jobs; }));  // the other one is idle, and steals
    });
    pool.drain();
    CHECK(kept == jobs + 1);
  });
}
