// SPDX-License-Identifier: MIT
// Broadcasts, watches, ends of channels, barriers and latches between fibers of several threads and
// plain threads, interrupted at random: nothing lost, nothing doubled, nobody left waiting.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <motet/motet.hpp>
#include <motet/sync/barrier.hpp>
#include <motet/sync/broadcast.hpp>
#include <motet/sync/channel_ends.hpp>
#include <motet/sync/latch.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/sync/watch.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sync/chaos.hpp"

using namespace motet;
using testing::chaos;
using testing::disturbed;
using testing::many;

namespace {

constexpr int producers = 3;
constexpr int runtimes = 2;
constexpr int fibers = 4;  // of each

/// So that what happens in between is interrupted, too.
void pause_at_times(int turn) {
  if (turn % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

struct item {
  int producer;
  int number;
};

/// Calls `again`, with its number from 0 on, in each of several fibers on each of several threads,
/// and after every interruption again, until it returns false; and `meanwhile`, here, as soon as
/// each fiber has begun.
/// Returns: how many interruptions there were.
int crowd(const std::function<bool(int)>& again, const std::function<void()>& meanwhile = [] {}) {
  std::atomic<int> interruptions{0};
  std::latch start(runtimes * fibers);
  std::array<bool, runtimes * fibers> has_begun{};
  std::vector<std::thread> threads;
  for (int place = 0; place < runtimes; ++place) {
    threads.emplace_back([&, place] {
      run(disturbed(), [&] {
        chaos disorder(static_cast<unsigned>(place) + 1);
        group members;
        for (int i = 0; i < fibers; ++i) {
          disorder.spin_stubborn(members, [&, number = place * fibers + i] {
            bool& is_counted = has_begun[static_cast<std::size_t>(number)];
            if (!std::exchange(is_counted, true)) start.count_down();
            return again(number);
          });
        }
        bool finished = false;
        auto disturber = spin([&] { disorder.run_until(finished); });
        members.await_all();
        finished = true;
        disturber.await();
        interruptions += disorder.interruptions;
      });
    });
  }
  start.wait();
  meanwhile();
  for (std::thread& thread : threads) thread.join();
  return interruptions;
}

/// What one fiber has got of several producers.
struct progress {
  std::array<int, producers> next{};
  int total = 0;
  std::uint64_t missed = 0;
  bool ordered = true;

  void note(const item& entry) {
    int& next_number = next[static_cast<std::size_t>(entry.producer)];
    ordered = ordered && entry.number >= next_number;
    next_number = entry.number + 1;
    ++total;
  }
};

/// Calls `produce` on threads of their own, and waits for their end.
void produce_all(const std::function<void(int)>& produce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < producers; ++i) threads.emplace_back([produce, i] { produce(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("broadcast: each subscription receives or misses each item", "[broadcast]") {
  const int per_producer = many(60'000) / producers;
  broadcast<item> news(16);
  std::array<broadcast<item>::subscription, runtimes * fibers> subscriptions;
  for (auto& subscription : subscriptions) subscription = news.subscribe();
  std::array<progress, runtimes * fibers> records;
  const auto listen = [&](int number) {
    const auto place = static_cast<std::size_t>(number);
    try {
      const std::optional<item> value = subscriptions[place].pop();
      if (value) records[place].note(*value);
      return value.has_value();
    } catch (const items_missed& error) {
      records[place].missed += error.count();
      return true;
    }
  };
  const auto push_all = [&](int producer) {
    for (int i = 0; i < per_producer; ++i) {
      news.push({producer, i});
      pause_at_times(i);
    }
  };
  const int interruptions = crowd(listen, [&] {
    produce_all(push_all);
    news.close();
  });
  CHECK(interruptions > 0);
  for (const progress& record : records) {
    CHECK(record.ordered);
    CHECK(static_cast<std::uint64_t>(record.total) + record.missed ==
          static_cast<std::uint64_t>(producers * per_producer));
  }
}

TEST_CASE("watch: every watcher sees the last value, and no older one after it", "[watch]") {
  const int sets = many(20'000);
  std::optional<watch<int>> state(std::in_place, 0);
  std::array<watch<int>::subscription, runtimes * fibers> subscriptions;
  for (auto& subscription : subscriptions) subscription = state->subscribe();
  std::array<int, runtimes * fibers> last{};
  std::atomic<bool> ordered{true};
  const auto watching = [&](int number) {
    const auto place = static_cast<std::size_t>(number);
    const std::optional<int> value = subscriptions[place].next();
    if (!value) return false;
    if (*value < last[place]) ordered = false;
    last[place] = *value;
    return true;
  };
  const int interruptions = crowd(watching, [&] {
    for (int i = 1; i <= sets; ++i) {
      state->set(i);
      pause_at_times(i);
    }
    state.reset();
  });
  CHECK(interruptions > 0);
  CHECK(ordered);
  for (const int number : last) CHECK(number == sets);
}

TEST_CASE("receiver: items reach interrupted receivers once each, until the last sender is gone",
          "[channel]") {
  const int per_producer = many(60'000) / producers;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{4}}) {
    auto [tx, rx] = make_channel<item>(capacity);
    std::array<std::vector<item>, runtimes * fibers> values;
    const receiver<item>& receiving = rx;
    const auto receive = [&](int number) {
      const std::optional<item> next = receiving.pop();
      if (next) values[static_cast<std::size_t>(number)].push_back(*next);
      return next.has_value();
    };
    const int interruptions = crowd(receive, [&, source = std::move(tx)]() mutable {
      produce_all([&per_producer, end = std::move(source)](int producer) {
        for (int i = 0; i < per_producer; ++i) {
          end.push({producer, i});
          pause_at_times(i);
        }
      });
    });
    CHECK(interruptions > 0);
    std::vector<int> times(static_cast<std::size_t>(producers * per_producer));
    bool ordered = true;
    for (const auto& batch : values) {
      progress order;
      for (const item& entry : batch) {
        order.note(entry);
        ++times[static_cast<std::size_t>(entry.producer * per_producer + entry.number)];
      }
      ordered = ordered && order.ordered;
    }
    CHECK(ordered);
    CHECK(std::count(times.begin(), times.end(), 1) == producers * per_producer);
  }
}

TEST_CASE("sender: an interrupted sender has sent exactly what its push has accepted",
          "[channel]") {
  const int per_producer = many(8'000);
  auto [tx, rx] = make_channel<item>(2);
  std::array<std::optional<sender<item>>, runtimes * fibers> senders;
  for (auto& slot : senders) slot = tx;
  tx = {};
  std::array<int, runtimes * fibers> next{};
  std::vector<int> last(runtimes * fibers, -1);
  bool ordered = true;
  std::thread receiving([&last, &ordered, source = std::move(rx)] {
    for (const item& entry : source) {
      int& previous = last[static_cast<std::size_t>(entry.producer)];
      ordered = ordered && entry.number == previous + 1;
      previous = entry.number;
    }
  });
  const int interruptions = crowd([&](int number) {
    const auto place = static_cast<std::size_t>(number);
    if (next[place] == per_producer) {
      senders[place].reset();
      return false;
    }
    senders[place]->push({number, next[place]});
    ++next[place];
    return true;
  });
  receiving.join();
  CHECK(interruptions > 0);
  CHECK(ordered);
  for (const int number : last) CHECK(number == per_producer - 1);
}

TEST_CASE("barrier: interrupted parties complete as many rounds as the others", "[barrier]") {
  const int rounds = many(4'000);
  barrier line(runtimes * fibers);
  std::array<int, runtimes * fibers> rounds_passed{};
  std::atomic<int> lasts{0};
  crowd([&](int number) {
    int& count = rounds_passed[static_cast<std::size_t>(number)];
    if (count == rounds) return false;
    if (line.arrive_and_wait()) ++lasts;
    ++count;
    return true;
  });
  CHECK(lasts == rounds);
}

TEST_CASE("latch admits all waiters, and a closed semaphore none", "[latch]") {
  const int rounds = many(200);
  for (int round = 0; round < rounds / 10 + 1; ++round) {
    latch start(runtimes * fibers);
    semaphore permits(2);
    std::array<bool, runtimes * fibers> has_counted{};
    std::atomic<int> passes{0}, refusals{0}, entries{0};
    std::atomic<bool> too_many{false};
    crowd([&](int number) {
      bool& flag = has_counted[static_cast<std::size_t>(number)];
      if (!std::exchange(flag, true)) start.count_down();
      start.wait();
      try {
        const permit_guard guard(permits, 1);
        if (++entries > 2) too_many = true;
        const auto leaves = [&] { --entries; };
        try {
          snooze();
        } catch (...) {
          leaves();
          throw;
        }
        leaves();
        if (++passes == 40) permits.close();
        return true;
      } catch (const semaphore_closed&) {
        ++refusals;
        return false;
      }
    });
    REQUIRE_FALSE(too_many);
    REQUIRE(refusals == runtimes * fibers);
    REQUIRE(entries == 0);
  }
}
