// SPDX-License-Identifier: MIT
// The explorer, by programs of a few lines whose outcomes the standard settles.
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "explorer/explore.hpp"
#include "support.hpp"

using namespace explorer;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto sequential = std::memory_order_seq_cst;

using outcomes = std::set<std::pair<int, int>>;

/// Each thread stores to its own atomic and loads the other's.
outcomes store_buffering(std::memory_order store, std::memory_order load, bool with_fence) {
  outcomes seen;
  const report result = explore([&](world& all) {
    atomic<int> x(0);
    atomic<int> y(0);
    std::pair<int, int> loaded;
    all.add_thread([&] {
      x.store(1, store);
      if (with_fence) fence(sequential);
      loaded.first = y.load(load);
    });
    all.add_thread([&] {
      y.store(1, store);
      if (with_fence) fence(sequential);
      loaded.second = x.load(load);
    });
    all.run();
    seen.insert(loaded);
  });
  CHECK(result.complete);
  return seen;
}

/// One thread stores data and then a flag, the other loads the flag and then the data.
outcomes message_passing(std::memory_order store, std::memory_order load, bool with_fences) {
  outcomes seen;
  const report result = explore([&](world& all) {
    atomic<int> data(0);
    atomic<int> flag(0);
    std::pair<int, int> loaded;
    all.add_thread([&] {
      data.store(1, relaxed);
      if (with_fences) fence(release);
      flag.store(1, store);
    });
    all.add_thread([&] {
      loaded.first = flag.load(load);
      if (with_fences) fence(acquire);
      loaded.second = data.load(relaxed);
    });
    all.run();
    seen.insert(loaded);
  });
  CHECK(result.complete);
  return seen;
}

/// Whether two threads can see the stores of two others in different orders.
bool disagreement(std::memory_order store, std::memory_order load) {
  bool found = false;
  const report result = explore([&](world& all) {
    atomic<int> x(0);
    atomic<int> y(0);
    std::pair<int, int> first;
    std::pair<int, int> second;
    all.add_thread([&] { x.store(1, store); });
    all.add_thread([&] { y.store(1, store); });
    all.add_thread([&] { first = {x.load(load), y.load(load)}; });
    all.add_thread([&] { second = {y.load(load), x.load(load)}; });
    all.run();
    found = found || (first == std::pair(1, 0) && second == std::pair(1, 0));
  });
  CHECK(result.complete);
  return found;
}

/// A step of a random program.
struct instruction {
  int kind;
  std::size_t target;
  std::memory_order order;
};
using program = std::array<std::vector<instruction>, 3>;

program random_program(std::mt19937& random) {
  constexpr std::array orders{relaxed, release, sequential};
  program result;
  for (auto& thread : result) {
    for (int i = 0; i < 3; ++i) {
      thread.push_back({static_cast<int>(random() % 5), random() % 2, orders[random() % 3]});
    }
  }
  return result;
}

/// Returns: what all threads can have loaded, and what the atomics can hold at the end.
std::set<std::vector<int>> outcomes_of(const program& code, const limits& most) {
  std::set<std::vector<int>> seen;
  const report result = explore(most, [&](world& all) {
    std::array<atomic<int>, 2> words;
    std::array<std::vector<int>, 3> loaded;
    for (std::size_t i = 0; i < code.size(); ++i) {
      all.add_thread([&, i] {
        int value = static_cast<int>(i) * 10;
        for (const auto& [kind, target, order] : code[i]) {
          if (kind == 0) fence(order);
          if (kind == 1) words[target].store(++value, order);
          if (kind == 2) loaded[i].push_back(words[target].exchange(++value, order));
          if (kind > 2) loaded[i].push_back(words[target].load(order == release ? acquire : order));
        }
      });
    }
    all.run();
    std::vector<int> outcome{words[0].load(), words[1].load()};
    for (const auto& values : loaded) outcome.insert(outcome.end(), values.begin(), values.end());
    seen.insert(std::move(outcome));
  });
  CHECK(result.complete);
  return seen;
}

}  // namespace

TEST_CASE("atomic::load() may miss another thread's store unless all is seq_cst", "[explorer]") {
  CHECK(store_buffering(relaxed, relaxed, false).contains({0, 0}));
  CHECK(store_buffering(release, acquire, false).contains({0, 0}));
  CHECK(store_buffering(sequential, acquire, false).contains({0, 0}));
  CHECK(store_buffering(sequential, sequential, false) == outcomes{{0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("fence() between a store and a load shows one of two threads the other's store",
          "[explorer]") {
  CHECK(store_buffering(relaxed, relaxed, true) == outcomes{{0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("atomic::store() with release publishes what came before it", "[explorer]") {
  const outcomes ordered{{0, 0}, {0, 1}, {1, 1}};
  CHECK(message_passing(release, acquire, false) == ordered);
  CHECK(message_passing(relaxed, relaxed, true) == ordered);
  CHECK(message_passing(relaxed, acquire, false).contains({1, 0}));
  CHECK(message_passing(release, relaxed, false).contains({1, 0}));
}

TEST_CASE("atomic::load() shows all threads one order of stores only if all is seq_cst",
          "[explorer]") {
  CHECK(disagreement(release, acquire));
  CHECK_FALSE(disagreement(sequential, sequential));
}

TEST_CASE("atomic::load() never goes back to an older store", "[explorer]") {
  const report result = explore([](world& all) {
    atomic<int> x(0);
    all.add_thread([&] {
      x.store(1, relaxed);
      x.store(2, relaxed);
    });
    all.add_thread([&] {
      const int first = x.load(relaxed);
      check(x.load(relaxed) >= first, "a load went back");
    });
    all.run();
  });
  CHECK(result.failure.empty());
  CHECK(result.complete);
}

TEST_CASE("atomic::fetch_add() loses no increment", "[explorer]") {
  const report result = explore([](world& all) {
    atomic<int> count(0);
    std::array<int, 3> found{};
    for (int& old : found) {
      all.add_thread([&] { old = count.fetch_add(1, relaxed); });
    }
    all.run();
    check(count.load() == 3, "an increment was lost");
    check(std::set(found.begin(), found.end()).size() == 3, "two found the same value");
  });
  CHECK(result.failure.empty());
  CHECK(result.executions == 6);
}

TEST_CASE("explore() finds the increment that a load and a store lose", "[explorer]") {
  const report result = explore([](world& all) {
    atomic<int> count(0);
    for (int i = 0; i < 2; ++i) all.add_thread([&] { count.store(count.load() + 1); });
    all.run();
    check(count.load() == 2, "an increment was lost");
  });
  CHECK(result.failure.starts_with("an increment was lost, after\n"));
}

TEST_CASE("atomic::compare_exchange_strong() continues a release sequence, a store does not",
          "[explorer]") {
  for (const bool updates : {true, false}) {
    const report result = explore([&](world& all) {
      plain<int> data(0);
      atomic<int> flag(0);
      all.add_thread([&] {
        data.set(1);
        flag.store(1, release);
      });
      all.add_thread([&] {
        int expected = 1;
        if (updates) flag.compare_exchange_strong(expected, 2, relaxed, relaxed);
        if (!updates && flag.load(relaxed) == 1) flag.store(2, relaxed);
      });
      all.add_thread([&] {
        if (flag.load(acquire) == 2) check(data.get() == 1, "the data is stale");
      });
      all.run();
    });
    CHECK(result.failure.empty() == updates);
  }
}

TEST_CASE("atomic::load() of an initial value orders nothing", "[explorer]") {
  const report result = explore([](world& all) {
    plain<int> data(0);
    std::optional<atomic<int>> fresh;
    atomic<atomic<int>*> published(nullptr);
    all.add_thread([&] {
      data.set(1);
      published.store(&fresh.emplace(0), relaxed);
    });
    all.add_thread([&] {
      if (atomic<int>* found = published.load(relaxed)) {
        found->load(acquire);
        data.get();
      }
    });
    all.run();
  });
  CHECK(result.failure.starts_with("a data race"));
}

TEST_CASE("plain::set() without a lock is a data race", "[explorer]") {
  for (const bool locks : {true, false}) {
    const report result = explore([&](world& all) {
      mutex guard;
      plain<int> count(0);
      for (int i = 0; i < 3; ++i) {
        all.add_thread([&] {
          std::unique_lock lock(guard, std::defer_lock);
          if (locks) lock.lock();
          count.set(count.get() + 1);
        });
      }
      all.run();
      check(count.get() == 3, "a count is missing");
    });
    INFO(result.failure);
    CHECK(result.failure.starts_with(locks ? "" : "a data race"));
    CHECK(result.complete == locks);
  }
}

TEST_CASE("explore() finds the deadlock of mutexes that are locked in different orders",
          "[explorer]") {
  for (const bool same_order : {true, false}) {
    const report result = explore([&](world& all) {
      mutex first;
      mutex second;
      all.add_thread([&] {
        const std::lock_guard outer(first);
        const std::lock_guard inner(second);
      });
      all.add_thread([&] {
        const std::lock_guard outer(same_order ? first : second);
        const std::lock_guard inner(same_order ? second : first);
      });
      all.run();
    });
    CHECK(result.complete == same_order);
    CHECK(result.failure.starts_with(same_order ? "" : "a deadlock: thread 1 waits for ever"));
  }
}

TEST_CASE("world::pause() in a loop waits for a store, and for nothing else", "[explorer]") {
  for (const bool stores : {true, false}) {
    const report result = explore([&](world& all) {
      atomic<int> flag(0);
      all.add_thread([&] {
        if (stores) flag.store(1, release);
      });
      all.add_thread([&] {
        while (flag.load(relaxed) == 0) here().pause();
      });
      all.run();
    });
    CHECK(result.complete == stores);
  }
}

TEST_CASE("futex_wait() returns if the word has changed, or after futex_wake()", "[explorer]") {
  for (const bool stores_first : {true, false}) {
    const report result = explore([&](world& all) {
      plain<int> data(0);
      atomic<int> word(0);
      all.add_thread([&] {
        data.set(1);
        if (!stores_first) futex_wake(word);
        word.store(1, release);
        if (stores_first) futex_wake(word);
      });
      all.add_thread([&] {
        while (word.load(acquire) == 0) futex_wait(word, 0);
        check(data.get() == 1, "the data is stale");
      });
      all.run();
    });
    CHECK(result.complete == stores_first);
    CHECK(result.failure.starts_with(stores_first ? "" : "a deadlock: thread 2 waits for ever"));
  }
}

TEST_CASE("explore() runs steps that commute in one order", "[explorer]") {
  const auto independent = [](world& all) {
    atomic<int> x(0);
    atomic<int> y(0);
    for (atomic<int>* own : {&x, &y}) {
      all.add_thread([own] {
        own->store(1);
        own->store(2);
      });
    }
    all.run();
  };
  CHECK(explore(independent).executions == 1);
  CHECK(explore({.preemptions = 4}, independent).executions == 6);
  CHECK(explore({.preemptions = 1}, independent).executions == 4);
  CHECK(explore({.preemptions = 0}, independent).executions == 2);
}

TEST_CASE("explore() leaves out no outcome with the orders of steps that commute", "[explorer]") {
  std::mt19937 random(7);
  limits every_order;
  every_order.preemptions = 100;
  for (std::size_t i = 0; i < testing::scaled(2'000, testing::under_tsan ? 1 : 5); ++i) {
    const program code = random_program(random);
    CHECK(outcomes_of(code, {}) == outcomes_of(code, every_order));
  }
}

TEST_CASE("explore() ends an execution with too many steps", "[explorer]") {
  limits most;
  most.steps = 10;
  const report result = explore(most, [](world& all) {
    atomic<int> x(0);
    all.add_thread([&] {
      for (int i = 0; i < 11; ++i) x.store(i);
    });
    all.run();
  });
  CHECK(result.failure.starts_with("more steps than an execution may have"));
}
