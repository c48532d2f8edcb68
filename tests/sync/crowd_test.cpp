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
  std::atomic<int> interrupted{0};
  std::latch begun(runtimes * fibers);
  std::array<bool, runtimes * fibers> has_begun{};
  std::vector<std::thread> threads;
  for (int place = 0; place < runtimes; ++place) {
    threads.emplace_back([&, place] {
      run(disturbed(), [&] {
        chaos disorder(static_cast<unsigned>(place) + 1);
        group all;
        for (int i = 0; i < fibers; ++i) {
          disorder.spin_stubborn(all, [&, number = place * fibers + i] {
            bool& counted = has_begun[static_cast<std::size_t>(number)];
            if (!std::exchange(counted, true)) begun.count_down();
            return again(number);
          });
        }
        bool over = false;
        auto disturber = spin([&] { disorder.run_until(over); });
        all.await_all();
        over = true;
        disturber.await();
        interrupted += disorder.interrupted;
      });
    });
  }
  begun.wait();
  meanwhile();
  for (std::thread& each : threads) each.join();
  return interrupted;
}

/// What one fiber has got of several producers.
struct progress {
  std::array<int, producers> next{};
  int got = 0;
  std::uint64_t missed = 0;
  bool ordered = true;

  void note(const item& one) {
    int& next_number = next[static_cast<std::size_t>(one.producer)];
    ordered = ordered && one.number >= next_number;
    next_number = one.number + 1;
    ++got;
  }
};

/// Calls `produce` on threads of their own, and waits for their end.
void produce_all(const std::function<void(int)>& produce) {
  std::vector<std::thread> all;
  for (int i = 0; i < producers; ++i) all.emplace_back([produce, i] { produce(i); });
  for (std::thread& each : all) each.join();
}

}  // namespace

TEST_CASE("each subscription is given or has missed each item of a broadcast", "[broadcast]") {
  const int each = many(60'000) / producers;
  broadcast<item> news(16);
  std::array<broadcast<item>::subscription, runtimes * fibers> mine;
  for (auto& one : mine) one = news.subscribe();
  std::array<progress, runtimes * fibers> seen;
  const auto listen = [&](int number) {
    const auto place = static_cast<std::size_t>(number);
    try {
      const std::optional<item> got = mine[place].pop();
      if (got) seen[place].note(*got);
      return got.has_value();
    } catch (const items_missed& lost) {
      seen[place].missed += lost.count();
      return true;
    }
  };
  const auto push_all = [&](int producer) {
    for (int i = 0; i < each; ++i) {
      news.push({producer, i});
      pause_at_times(i);
    }
  };
  const int interrupted = crowd(listen, [&] {
    produce_all(push_all);
    news.close();
  });
  CHECK(interrupted > 0);
  for (const progress& one : seen) {
    CHECK(one.ordered);
    CHECK(static_cast<std::uint64_t>(one.got) + one.missed ==
          static_cast<std::uint64_t>(producers * each));
  }
}

TEST_CASE("every watcher comes to see the last value, and none an older one after it", "[watch]") {
  const int sets = many(20'000);
  std::optional<watch<int>> state(std::in_place, 0);
  std::array<watch<int>::subscription, runtimes * fibers> mine;
  for (auto& one : mine) one = state->subscribe();
  std::array<int, runtimes * fibers> last{};
  std::atomic<bool> ordered{true};
  const auto watching = [&](int number) {
    const auto place = static_cast<std::size_t>(number);
    const std::optional<int> now = mine[place].next();
    if (!now) return false;
    if (*now < last[place]) ordered = false;
    last[place] = *now;
    return true;
  };
  const int interrupted = crowd(watching, [&] {
    for (int i = 1; i <= sets; ++i) {
      state->set(i);
      pause_at_times(i);
    }
    state.reset();
  });
  CHECK(interrupted > 0);
  CHECK(ordered);
  for (const int number : last) CHECK(number == sets);
}

TEST_CASE("items reach interrupted receivers once each, until the last sender has gone",
          "[channel]") {
  const int each = many(60'000) / producers;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{4}}) {
    auto [to, from] = make_channel<item>(capacity);
    std::array<std::vector<item>, runtimes * fibers> got;
    const receiver<item>& receiving = from;
    const auto receive = [&](int number) {
      const std::optional<item> next = receiving.pop();
      if (next) got[static_cast<std::size_t>(number)].push_back(*next);
      return next.has_value();
    };
    const int interrupted = crowd(receive, [&, shared = std::move(to)]() mutable {
      produce_all([&each, mine = std::move(shared)](int producer) {
        for (int i = 0; i < each; ++i) {
          mine.push({producer, i});
          pause_at_times(i);
        }
      });
    });
    CHECK(interrupted > 0);
    std::vector<int> times(static_cast<std::size_t>(producers * each));
    bool ordered = true;
    for (const auto& some : got) {
      progress order;
      for (const item& one : some) {
        order.note(one);
        ++times[static_cast<std::size_t>(one.producer * each + one.number)];
      }
      ordered = ordered && order.ordered;
    }
    CHECK(ordered);
    CHECK(std::count(times.begin(), times.end(), 1) == producers * each);
  }
}

TEST_CASE("interrupted senders have sent what they have sent", "[channel]") {
  const int each = many(8'000);
  auto [to, from] = make_channel<item>(2);
  std::array<std::optional<sender<item>>, runtimes * fibers> mine;
  for (auto& one : mine) one = to;
  to = {};
  std::array<int, runtimes * fibers> next{};
  std::vector<int> last(runtimes * fibers, -1);
  bool ordered = true;
  std::thread receiving([&last, &ordered, taken = std::move(from)] {
    for (const item& one : taken) {
      int& before = last[static_cast<std::size_t>(one.producer)];
      ordered = ordered && one.number == before + 1;
      before = one.number;
    }
  });
  const int interrupted = crowd([&](int number) {
    const auto place = static_cast<std::size_t>(number);
    if (next[place] == each) {
      mine[place].reset();
      return false;
    }
    mine[place]->push({number, next[place]});
    ++next[place];
    return true;
  });
  receiving.join();
  CHECK(interrupted > 0);
  CHECK(ordered);
  for (const int number : last) CHECK(number == each - 1);
}

TEST_CASE("interrupted parties of a barrier come to as many rounds as the others", "[barrier]") {
  const int rounds = many(4'000);
  barrier all(runtimes * fibers);
  std::array<int, runtimes * fibers> passed{};
  std::atomic<int> lasts{0};
  crowd([&](int number) {
    int& mine = passed[static_cast<std::size_t>(number)];
    if (mine == rounds) return false;
    if (all.arrive_and_wait()) ++lasts;
    ++mine;
    return true;
  });
  CHECK(lasts == rounds);
}

TEST_CASE("a latch lets everybody through, and a closed semaphore nobody", "[latch]") {
  const int rounds = many(200);
  for (int round = 0; round < rounds / 10 + 1; ++round) {
    latch begun(runtimes * fibers);
    semaphore permits(2);
    std::array<bool, runtimes * fibers> counted{};
    std::atomic<int> through{0}, refused{0}, inside{0};
    std::atomic<bool> too_many{false};
    crowd([&](int number) {
      bool& mine = counted[static_cast<std::size_t>(number)];
      if (!std::exchange(mine, true)) begun.count_down();
      begun.wait();
      try {
        const permit_guard in(permits, 1);
        if (++inside > 2) too_many = true;
        const auto leaves = [&] { --inside; };
        try {
          snooze();
        } catch (...) {
          leaves();
          throw;
        }
        leaves();
        if (++through == 40) permits.close();
        return true;
      } catch (const semaphore_closed&) {
        ++refused;
        return false;
      }
    });
    REQUIRE_FALSE(too_many);
    REQUIRE(refused == runtimes * fibers);
    REQUIRE(inside == 0);
  }
}
