// SPDX-License-Identifier: MIT
// How the explorer searches: which executions it runs, and which mistakes it finds.
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "explorer/explore.hpp"
#include "support.hpp"

using namespace explorer;
using enum std::memory_order;

namespace {

/// A step of a random program.
struct instruction {
  int kind;
  std::size_t target;
  std::memory_order order;
};
using program = std::array<std::vector<instruction>, 3>;

program random_program(std::mt19937& random) {
  constexpr std::array orders{relaxed, release, seq_cst};
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

TEST_CASE("explore() finds the increment that a load and a store lose", "[explorer]") {
  const report result = explore([](world& all) {
    atomic<int> count(0);
    for (int i = 0; i < 2; ++i) all.add_thread([&] { count.store(count.load() + 1); });
    all.run();
    check(count.load() == 2, "an increment was lost");
  });
  CHECK(result.failure.starts_with("an increment was lost, after\n"));
}

namespace {

bool try_to_claim(atomic<int>& owner, int self) {
  int nobody = 0;
  return owner.compare_exchange_strong(nobody, self);
}

report claim_with(const mutations& mistakes) {
  limits most;
  most.mistakes = mistakes;
  return explore(most, [](world& all) {
    atomic<int> owner(0);
    plain<int> owned(0);
    for (int self : {1, 2}) {
      all.add_thread([&, self] {
        if (try_to_claim(owner, self)) owned.set(owned.get() + 1);
      });
    }
    all.run();
    check(owned.get() == 1, "not one of the threads owns it");
  });
}

bool await_flag(const atomic<bool>& flag) {
  return flag.load(acquire);
}

report message_with(const mutations& mistakes) {
  limits most;
  most.mistakes = mistakes;
  return explore(most, [](world& all) {
    plain<int> data(0);
    atomic<bool> flag(false);
    all.add_thread([&] {
      data.set(1);
      flag.store(true, release);
    });
    all.add_thread([&] {
      if (await_flag(flag)) data.get();
    });
    all.run();
  });
}

}  // namespace

TEST_CASE("explore() makes the mistakes that it is given, in the functions that they name",
          "[explorer]") {
  using kind = mutation::kind;
  CHECK(claim_with({}).complete);
  CHECK(claim_with({{kind::torn, "somewhere_else"}}).complete);
  CHECK_FALSE(claim_with({{kind::torn, "try_to_claim"}}).failure.empty());
  CHECK(message_with({}).complete);
  CHECK_FALSE(message_with({{kind::relaxed, "await_flag"}}).failure.empty());
  CHECK_FALSE(message_with({{kind::blind, "await_flag", 1}}).failure.empty());
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
  for (std::size_t i = 0;
       i < testing::scaled(testing::under_tsan ? 100 : 2'000, testing::under_tsan ? 1 : 5); ++i) {
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

TEST_CASE("world::pause() of a second loop does not take a stale load for the newest",
          "[explorer]") {
  const report result = explore([](world& all) {
    atomic<int> first(0);
    atomic<int> second(0);
    atomic<int> own(0);
    all.add_thread([&] {
      first.store(1, release);
      second.store(1, release);
    });
    all.add_thread([&] {
      while (first.load(acquire) == 0) here().pause();
      own.store(1);
      while (second.load(acquire) == 0) here().pause();
    });
    all.run();
  });
  INFO(result.failure);
  CHECK(result.complete);
}
