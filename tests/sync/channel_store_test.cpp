// SPDX-License-Identifier: MIT
// A channel with a store of another kind: the waits, the hand-over and select() are the channel's.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <motet/motet.hpp>
#include <motet/sync/channel.hpp>
#include <motet/sync/select.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

namespace {

/// Pops the largest item first. Its memory is one array, which add() replaces by a larger one.
template <typename T>
class largest_first {
 public:
  using memory = std::vector<T>;
  static constexpr std::size_t unlimited = static_cast<std::size_t>(-1);

  explicit largest_first(std::size_t capacity) : capacity_(capacity) {}
  std::size_t size() const noexcept { return items_.size(); }
  std::size_t capacity() const noexcept { return capacity_; }
  bool full() const noexcept { return items_.size() >= capacity_; }

  std::size_t shortage() const noexcept {
    const std::size_t needed = items_.size() + 2;  // the item, and that of a waiting push
    return needed > items_.capacity() ? 2 * needed : 0;
  }
  std::size_t retain_for(std::size_t count) {
    if (count > 1000) throw std::invalid_argument("largest_first: 1000 items are the limit");
    const std::size_t needed = items_.size() + count + 1;
    return needed > items_.capacity() ? needed : 0;
  }
  static memory allocate(std::size_t count) {
    memory fresh;
    fresh.reserve(count);
    ++allocations;
    return fresh;
  }
  memory add(memory fresh) noexcept {
    if (fresh.capacity() <= items_.capacity()) return fresh;  // another push has added more
    for (T& item : items_) fresh.push_back(std::move(item));
    return std::exchange(items_, std::move(fresh));
  }

  void push(T&& item) noexcept {
    if (items_.size() == items_.capacity()) std::abort();  // it would allocate
    items_.push_back(std::move(item));
    std::push_heap(items_.begin(), items_.end());
  }
  memory pop(std::optional<T>& item) noexcept {
    std::pop_heap(items_.begin(), items_.end());
    item.emplace(std::move(items_.back()));
    items_.pop_back();
    return {};
  }

  static inline int allocations = 0;

 private:
  const std::size_t capacity_;
  std::vector<T> items_;
};

struct shared_form {
  using channel = detail::basic_channel<int, detail::shared_policy, largest_first<int>>;
};
struct local_form {
  using channel = detail::basic_channel<int, detail::local_policy, largest_first<int>>;
};

}  // namespace

#define FORMS shared_form, local_form

TEMPLATE_TEST_CASE("basic_channel::pop() returns items in the order of the store", "[channel]",
                   FORMS) {
  run([] {
    typename TestType::channel numbers(8);
    for (const int number : {3, 9, 1, 7}) numbers.push(number);
    CHECK(numbers.size() == 4);
    CHECK(numbers.pop() == 9);
    CHECK(numbers.pop() == 7);
    numbers.push(8);
    CHECK(numbers.try_pop() == 8);
    numbers.close();
    std::vector<int> remaining;
    for (const int number : numbers) remaining.push_back(number);
    CHECK(remaining == std::vector{3, 1});
  });
}

TEMPLATE_TEST_CASE("basic_channel::push() moves into a full store of another kind after a pop",
                   "[channel]", FORMS) {
  run([] {
    typename TestType::channel numbers(2);
    numbers.push(5);
    numbers.push(4);
    CHECK_FALSE(numbers.try_push(6));
    auto producer = spin([&] { numbers.push(6); });
    settle();
    CHECK(numbers.stats().pushing == 1);
    CHECK(numbers.pop() == 5);
    producer.await();
    CHECK(numbers.pop() == 6);
    CHECK(numbers.pop() == 4);
  });
}

TEMPLATE_TEST_CASE("select() waits on a channel with a store of another kind", "[channel][select]",
                   FORMS) {
  run([] {
    typename TestType::channel numbers(1);
    std::optional<int> popped;
    auto producer = spin([&] {
      settle();
      numbers.push(2);
    });
    CHECK(select(on_pop(numbers, [&](std::optional<int> number) { popped = number; }),
                 on_timeout(10s)) == 0);
    CHECK(popped == 2);
    producer.await();

    numbers.push(1);
    auto consumer = spin([&] {
      settle();
      popped = numbers.pop();
    });
    CHECK(select(on_push(numbers, 3), on_timeout(10s)) == 0);
    consumer.await();
    CHECK(popped == 1);
    CHECK(numbers.pop() == 3);
    CHECK(select(on_pop(numbers), on_timeout(1ms)) == 1);
  });
}

TEMPLATE_TEST_CASE("basic_channel::push() lets a store of another kind grow", "[channel]", FORMS) {
  run([] {
    typename TestType::channel numbers(200);
    for (int number = 0; number < 200; ++number) numbers.push(number);
    for (int number = 199; number >= 0; --number) CHECK(numbers.pop() == number);
  });
}

TEMPLATE_TEST_CASE("basic_channel::reserve() asks its store for all items at once", "[channel]",
                   FORMS) {
  run([] {
    typename TestType::channel numbers(150);
    const int before = largest_first<int>::allocations;
    numbers.reserve(150);
    CHECK(largest_first<int>::allocations == before + 1);
    for (int number = 0; number < 150; ++number) numbers.push(number);
    CHECK(numbers.pop() == 149);
    numbers.reserve(1);
    CHECK(largest_first<int>::allocations == before + 1);
    CHECK_THROWS_AS(numbers.reserve(1001), std::invalid_argument);
  });
}

TEST_CASE("reserve() of a rendezvous channel does nothing, on any thread", "[channel]") {
  local::channel<int> numbers;
  std::thread([&] { numbers.reserve(8); }).join();
  run([&] { CHECK_FALSE(numbers.try_pop()); });
}
