// SPDX-License-Identifier: MIT
// The explorer's memory model, by programs of a few lines whose outcomes the standard settles.
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "catch.hpp"
#include "explorer/explore.hpp"

using namespace explorer;
using enum std::memory_order;

namespace {

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
      if (with_fence) fence(seq_cst);
      loaded.first = y.load(load);
    });
    all.add_thread([&] {
      y.store(1, store);
      if (with_fence) fence(seq_cst);
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

}  // namespace

TEST_CASE("atomic::load() may miss another thread's store unless all is seq_cst", "[explorer]") {
  CHECK(store_buffering(relaxed, relaxed, false).contains({0, 0}));
  CHECK(store_buffering(release, acquire, false).contains({0, 0}));
  CHECK(store_buffering(seq_cst, acquire, false).contains({0, 0}));
  CHECK(store_buffering(seq_cst, seq_cst, false) == outcomes{{0, 1}, {1, 0}, {1, 1}});
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
  CHECK_FALSE(disagreement(seq_cst, seq_cst));
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
    atomic<int> flag(0);
    atomic<bool> published(false);
    all.add_thread([&] {
      data.set(1);
      published.store(true, relaxed);
    });
    all.add_thread([&] {
      if (published.load(relaxed)) {
        flag.load(acquire);
        data.get();
      }
    });
    all.run();
  });
  CHECK(result.failure.starts_with("a data race: a read and a write"));
}

TEST_CASE("atomic's construction and destruction are ordered before and after its accesses",
          "[explorer]") {
  for (const bool orders : {true, false}) {
    const report result = explore([&](world& all) {
      std::optional<atomic<int>> word;
      atomic<bool> made(false);
      atomic<bool> used(false);
      all.add_thread([&] {
        word.emplace(1);
        made.store(true, orders ? release : relaxed);
        while (!used.load(orders ? acquire : relaxed)) here().pause();
        word.reset();
      });
      all.add_thread([&] {
        while (!made.load(orders ? acquire : relaxed)) here().pause();
        word->store(2, relaxed);
        used.store(true, release);
      });
      all.run();
    });
    CHECK(result.complete == orders);
    CHECK(result.failure.starts_with(orders ? "" : "a data race: the construction"));
  }
}

TEST_CASE("explore() finds an access to an atomic that has been destroyed", "[explorer]") {
  const report result = explore([](world& all) {
    std::optional<atomic<int>> word(1);
    atomic<bool> used(false);
    all.add_thread([&] {
      while (!used.load()) here().pause();
      word.reset();
    });
    all.add_thread([&] {
      used.store(true);
      word->store(2, relaxed);
    });
    all.run();
  });
  CHECK(result.failure.starts_with("a data race: the destruction of an atomic"));
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
