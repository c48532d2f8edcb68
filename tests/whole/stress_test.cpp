// SPDX-License-Identifier: MIT
// Fibers that come and go while other threads raise, cancel, stop, schedule and await them.
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "platform/guards.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct poke : std::runtime_error {
  poke() : std::runtime_error("poke") {}
};

/// Handles that the home thread lays out for the others to take.
class table {
 public:
  explicit table(std::size_t size) : places_(size) {}

  void put(std::size_t place, fiber_ref fiber) {
    const std::lock_guard guard(lock_);
    std::swap(places_[place % places_.size()], fiber);
  }
  fiber_ref take(std::size_t place) {
    const std::lock_guard guard(lock_);
    return places_[place % places_.size()];
  }

 private:
  std::mutex lock_;
  std::vector<fiber_ref> places_;
};

/// What a fiber under fire does: waits in every way there is, and counts how it ended.
struct tally {
  std::atomic<std::size_t> starts{0};
  std::atomic<std::size_t> ends{0};
};

int live(tally& counts, std::uint32_t seed) {
  counts.starts.fetch_add(1, std::memory_order_relaxed);
  struct at_end {
    tally& total_counts;
    ~at_end() { total_counts.ends.fetch_add(1, std::memory_order_relaxed); }
  } const ending{counts};
  for (std::uint32_t step = 0; step < 1 + seed % 4; ++step) {
    try {
      switch ((seed + step) % 4) {
        case 0:
          snooze();
          break;
        case 1:
          sleep_for(std::chrono::microseconds(seed % 50));
          break;
        case 2:
          move_on_after(50us, [] { suspend<int>(); });
          break;
        case 3:
          spin([] { snooze(); }).await();
          break;
      }
    } catch (const poke&) {
      if (seed % 3 == 0) throw;
    } catch (const std::logic_error&) {
      // a token of another type: somebody guessed
    }
  }
  return 1;
}

void fire(table& targets, std::atomic<bool>& finished, std::uint32_t seed) {
  std::mt19937 random(seed);
  while (!finished.load(std::memory_order_relaxed)) {
    const fiber_ref target = targets.take(random());
    if (!target) continue;
    switch (random() % 5) {
      case 0:
        target.raise(poke());
        break;
      case 1:
        target.cancel();
        break;
      case 2:
        target.schedule(7);
        break;
      case 3:
        target.schedule(std::string("a long enough text to need an allocation of its own"));
        break;
      case 4:
        try {
          target.await();
        } catch (const std::exception&) {
          // poked or cancelled
        }
        break;
    }
  }
}

}  // namespace

TEST_CASE("fiber: very many wait at once, and all end", "[stress]") {
  const bool few = testing::under_tsan || testing::under_asan || testing::guards_take_mappings();
  const std::size_t count = few ? 4'000 : testing::scaled(1'000'000, 30'000);
  std::size_t starts = 0;
  std::size_t ends = 0;
  run([&] {
    group members;
    for (std::size_t i = 0; i < count; ++i) {
      members.spin([&] {
        ++starts;
        try {
          sleep();
        } catch (const cancelled&) {
          ++ends;
        }
      });
    }
    snooze();
    CHECK(starts == count);
    members.cancel();
    members.await_all();
  });
  CHECK(ends == count);
}

TEST_CASE("fiber: all end exactly once while other threads interrupt them", "[stress]") {
  const std::size_t count = testing::scaled(200'000, testing::under_tsan ? 3'000 : 20'000);
  tally counts;
  table targets(64);
  std::atomic<bool> finished{false};
  std::vector<std::thread> enemies;
  std::size_t results = 0;
  std::size_t failures = 0;
  run(testing::poked<poke>(), [&] {
    for (std::uint32_t i = 0; i < 2; ++i) {
      enemies.emplace_back([&targets, &finished, i] { fire(targets, finished, 17 + i); });
    }
    enemies.emplace_back([&] { run([&] { fire(targets, finished, 99); }); });
    for (std::size_t total = 0; total < count;) {
      std::vector<fiber<int>> batch;
      for (int i = 0; i < 32; ++i, ++total) {
        batch.push_back(
            spin([&counts, total] { return live(counts, static_cast<std::uint32_t>(total)); }));
        targets.put(total, batch.back());
        if (total % 100 == 0) batch.back().stop(2);
      }
      for (fiber<int>& handle : batch) {
        for (bool placed = false; !placed;) {
          try {
            handle.await();
            ++results;
            placed = true;
          } catch (const fiber_cancelled&) {
            ++failures;
            placed = true;
          } catch (const std::exception&) {
            // its own failure, or one of a fiber that nobody awaited when it failed
            placed = handle.state() == fiber_state::dead;
            if (placed) ++failures;
          }
        }
      }
    }
    finished = true;
  });
  for (std::thread& enemy : enemies) enemy.join();
  CHECK(results + failures >= count);
  CHECK(counts.starts == counts.ends);
}
