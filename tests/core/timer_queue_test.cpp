// SPDX-License-Identifier: MIT
// Timers against a model.
#include "core/time/timer_queue.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using motet::detail::timer;
using motet::detail::timer_queue;

namespace {

motet::clock::time_point at(std::int64_t nanoseconds) {
  return motet::clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

std::int64_t key_of(const timer& t) {
  return t.due.time_since_epoch().count();
}

}  // namespace

TEST_CASE("timer_queue: removing an inner timer moves its replacement up as well as down",
          "[timers]") {
  timer_queue heap;
  heap.reserve(1000);
  std::vector<std::unique_ptr<timer>> timers;
  // In the order of the tree, four children each: 110 is below 100, and the last, 11, below 10.
  for (const int key : {1, 100, 10, 20, 30, 110, 120, 130, 140, 11}) {
    timers.push_back(std::make_unique<timer>());
    timers.back()->due = at(key);
    heap.push(*timers.back());
  }
  heap.remove(*timers[5]);  // 11 comes into its place, and belongs above 100
  heap.remove(*timers[5]);  // the second time it is not there, and nothing happens
  std::vector<std::int64_t> order;
  while (timer* first = heap.first()) {
    order.push_back(key_of(*first));
    heap.remove(*first);
  }
  CHECK(order == std::vector<std::int64_t>{1, 10, 11, 20, 30, 100, 120, 130, 140});
}

TEST_CASE("timer_queue fires timers of one instant in the order in which they were set",
          "[timers]") {
  timer_queue heap;
  heap.reserve(1000);
  std::vector<timer> timers(100);
  for (timer& entry : timers) {
    entry.due = at(7);
    heap.push(entry);
  }
  for (timer& entry : timers) {
    REQUIRE(heap.first() == &entry);
    heap.remove(entry);
  }
  CHECK(heap.empty());
}

TEST_CASE("timer_queue agrees with a multiset in a million random operations", "[timers]") {
  std::mt19937 random(20);
  timer_queue heap;
  heap.reserve(1000);
  std::vector<timer> timers(1000);
  std::multiset<std::pair<std::int64_t, std::uint64_t>> model;
  const auto entry_of = [](const timer& t) { return std::pair(key_of(t), t.order); };
  const std::size_t rounds = testing::scaled(1'000'000, testing::under_tsan ? 100'000 : 1'000'000);
  std::size_t disagreements = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    timer& entry = timers[random() % timers.size()];
    const auto key = static_cast<std::int64_t>(random() % 500);
    if (!entry.armed()) {
      entry.due = at(key);
      heap.push(entry);
      model.insert(entry_of(entry));
    } else if (random() % 3 == 0) {
      model.erase(model.find(entry_of(entry)));
      entry.due = at(key);
      heap.update(entry);
      model.insert(entry_of(entry));
    } else {
      timer& leaving = random() % 2 == 0 ? entry : *heap.first();
      model.erase(model.find(entry_of(leaving)));
      heap.remove(leaving);
    }
    if (heap.size() != model.size()) ++disagreements;
    if (!model.empty() && entry_of(*heap.first()) != *model.begin()) ++disagreements;
  }
  CHECK(disagreements == 0);
}
