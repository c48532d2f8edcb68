// SPDX-License-Identifier: MIT
// The run queue against a model, across the sizes at which it changes its form.
#include <cstddef>
#include <deque>
#include <motet/detail/core/run_queue.hpp>
#include <random>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace {

struct runner {
  union {
    runner* queued_behind = nullptr;
    std::size_t queued_at;
  };
};
using queue = motet::detail::run_queue<runner>;

/// A queue of any of `fibers`, and what it must agree with.
class checked_queue {
 public:
  explicit checked_queue(std::size_t fibers) : idle_(fibers), fibers_(fibers) {
    for (std::size_t i = 0; i < fibers; ++i) idle_[i] = &fibers_[i];
    subject.reserve(fibers);
  }

  void push() {
    if (idle_.empty()) return;
    subject.push_back(*idle_.back());
    model_.push_back(idle_.back());
    idle_.pop_back();
  }
  void pop() {
    if (model_.empty()) return;
    const runner* const first = &subject.pop_front();
    agrees = agrees && first == model_.front();
    idle_.push_back(model_.front());
    model_.pop_front();
  }
  void remove(std::size_t place) {
    const auto entry = model_.begin() + static_cast<std::ptrdiff_t>(place % model_.size());
    subject.remove(**entry);
    idle_.push_back(*entry);
    model_.erase(entry);
  }
  /// Moves the fiber at that place to the front, if the queue is in a ring and allows it.
  void overtake(std::size_t place) {
    if (!subject.in_ring()) return;
    const auto entry = model_.begin() + static_cast<std::ptrdiff_t>(place % model_.size());
    runner* const fiber = *entry;
    subject.move_to_front(*fiber);
    if (subject.front() == fiber) {
      ++overtakers;
      model_.erase(entry);
      model_.push_front(fiber);
    }
    agrees = agrees && &subject.back_of_ring() == model_.back();
  }
  void compare() {
    agrees = agrees && subject.size() == model_.size() && subject.empty() == model_.empty() &&
             subject.front() == (model_.empty() ? nullptr : model_.front());
  }

  queue subject;
  bool agrees = true;
  std::size_t overtakers = 0;

 private:
  std::deque<runner*> model_;
  std::vector<runner*> idle_;
  std::vector<runner> fibers_;
};

}  // namespace

TEST_CASE("run_queue agrees with a deque while it grows and shrinks across its forms", "[core]") {
  constexpr std::size_t capacity = 2 * queue::many + 10;
  checked_queue pair(capacity);
  std::mt19937 random(39);
  const std::size_t rounds = testing::scaled(60, 6);
  std::size_t rings = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t steps = 2 * capacity;
    for (std::size_t step = 0; step < steps; ++step) {
      // More pushes than pops in even rounds, and fewer in odd ones.
      (random() % 4 == 0) == (round % 2 == 0) ? pair.pop() : pair.push();
      if (step % 64 == 0) pair.subject.arrange();
      if (step % 8 == 0) pair.overtake(random());
      pair.compare();
    }
    if (!pair.subject.empty()) pair.remove(random());
    rings += pair.subject.in_ring() ? 1 : 0;
  }
  CHECK(pair.agrees);
  CHECK(rings >= rounds / 2);
  CHECK(pair.overtakers > rounds * 100);
  while (!pair.subject.empty()) pair.pop();
  pair.compare();
  CHECK(pair.agrees);
}

TEST_CASE("run_queue::reserve() keeps the order of a queue that is in its ring", "[core]") {
  std::vector<runner> fibers(8 * queue::many);
  queue subject;
  std::size_t next = 0;
  const auto push_up_to = [&](std::size_t count) {
    for (; next < count; ++next) {
      subject.reserve(next + 1);
      subject.push_back(fibers[next]);
      subject.arrange();
    }
  };
  constexpr std::size_t many = queue::many + 1;
  push_up_to(many - 1);
  CHECK_FALSE(subject.in_ring());
  push_up_to(many);
  CHECK(subject.in_ring());
  for (std::size_t i = 0; i < 100; ++i) subject.push_back(subject.pop_front());
  push_up_to(fibers.size());
  std::size_t misplaced = 0;
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    // The first hundred stand behind the others that were in the queue then.
    const std::size_t expected = i < many ? (i + 100) % many : i;
    misplaced += &subject.pop_front() == &fibers[expected] ? 0 : 1;
  }
  CHECK(misplaced == 0);
  CHECK(subject.empty());
  CHECK_FALSE(subject.in_ring());
}

TEST_CASE("run_queue::move_to_front() leaves gaps, which are closed when the ring is full",
          "[core]") {
  checked_queue pair(queue::many + 1);
  for (std::size_t i = 0; i < queue::many + 1; ++i) pair.push();
  pair.subject.arrange();
  REQUIRE(pair.subject.in_ring());
  std::mt19937 random(11);
  for (std::size_t step = 0; step < testing::scaled(40, 4) * queue::many; ++step) {
    pair.overtake(random());
    if (random() % 2 == 0) pair.overtake(random());
    pair.pop();
    pair.push();
    pair.compare();
  }
  REQUIRE(pair.subject.in_ring());
  while (!pair.subject.empty()) pair.pop();
  CHECK(pair.agrees);
}

TEST_CASE("run_queue::move_to_front() lets so many fibers in a row overtake the others", "[core]") {
  std::vector<runner> fibers(queue::many + 1);
  queue subject;
  subject.reserve(fibers.size());
  for (runner& fiber : fibers) subject.push_back(fiber);
  subject.arrange();
  REQUIRE(subject.in_ring());
  for (int round = 0; round < 3; ++round) {
    runner* const first = subject.front();
    std::size_t overtakers = 0;
    for (;; ++overtakers) {
      runner& last = subject.back_of_ring();
      subject.move_to_front(last);
      if (subject.front() == first) break;
      REQUIRE(&subject.pop_front() == &last);
      subject.push_back(last);
    }
    CHECK(overtakers == queue::most_overtakers);
    REQUIRE(&subject.pop_front() == first);
    subject.push_back(*first);
  }
}

TEST_CASE("run_queue::abandon() empties the queue in both forms", "[core]") {
  std::vector<runner> fibers(queue::many + 1);
  queue subject;
  subject.reserve(fibers.size());
  for (const bool in_ring : {false, true}) {
    for (std::size_t i = 0; i < queue::many; ++i) subject.push_back(fibers[i]);
    if (in_ring) subject.push_back(fibers.back());
    subject.arrange();
    CHECK(subject.in_ring() == in_ring);
    subject.abandon();
    CHECK(subject.empty());
    CHECK(subject.front() == nullptr);
    subject.push_back(fibers[5]);
    CHECK(&subject.pop_front() == &fibers[5]);
  }
}
