// SPDX-License-Identifier: MIT
// transform_in(): the order of the results, how many calls are in flight, and how it ends early.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <list>
#include <memory>
#include <motet/motet.hpp>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;

namespace {

std::vector<int> numbers_up_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// A range that can be read only once, and counts the elements that have been read.
class read_once {
 public:
  explicit read_once(int count) : count_(count) {}
  class iterator {
   public:
    using value_type = std::unique_ptr<int>;
    using difference_type = std::ptrdiff_t;
    explicit iterator(read_once& range) noexcept : range_(&range) {}
    std::unique_ptr<int> operator*() const { return std::make_unique<int>(range_->read_); }
    iterator& operator++() {
      ++range_->read_;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept {
      return range_->read_ == range_->count_;
    }

   private:
    read_once* range_;
  };
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }
  int read() const noexcept { return read_; }

 private:
  int count_;
  int read_ = 0;
};

}  // namespace

TEST_CASE("transform_in() yields the results in the order of the elements", "[pool]") {
  thread_pool pool(3);
  const std::vector<int> numbers = numbers_up_to(500);
  for (const std::size_t in_flight : {1U, 2U, 7U, 1'000U}) {
    std::vector<int> results;
    for (int result : transform_in(
             pool, numbers,
             [](int number) {
               sleep_for(std::chrono::microseconds(number * 7919 % 200));
               return 2 * number;
             },
             in_flight))
      results.push_back(result);
    REQUIRE(results.size() == numbers.size());
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(results[i] == 2 * numbers[i]);
  }
  for (int result : transform_in(pool, std::vector<int>(), [](int number) { return number; }))
    FAIL("a result " << result << " of no element");
}

TEST_CASE("transform_in() passes elements of a container by reference, others by value", "[pool]") {
  thread_pool pool(2);
  std::list<std::string> words{"one", "two", "three"};
  auto word = words.begin();
  for (const std::string* address : transform_in(pool, words, [](std::string& it) { return &it; }))
    CHECK(address == &*word++);
  int expected = 0;
  for (const int number :
       transform_in(pool, read_once(20), [](std::unique_ptr<int> it) { return *it; }))
    CHECK(number == expected++);
  CHECK(expected == 20);
}

TEST_CASE("transform_in() has at most so many calls in flight, and reads no further", "[pool]") {
  thread_pool pool(2);
  barrier both(2);
  std::atomic<int> running{0}, most{0};
  read_once source(50);
  int yielded = 0;
  for (const int number : transform_in(
           pool, source,
           [&](std::unique_ptr<int> it) {
             const int now = ++running;
             for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
             }
             if (*it < 2) both.arrive_and_wait();
             --running;
             return *it;
           },
           3)) {
    CHECK(number == yielded++);
    CHECK(source.read() <= yielded + 2);
  }
  CHECK(most <= 3);
  CHECK(most >= 2);
  CHECK_THROWS_AS(transform_in(
                      pool, source, [](std::unique_ptr<int> it) { return *it; }, 0),
                  std::invalid_argument);
}

TEST_CASE("transform_in() throws a failure where its result would come, and ends the calls behind",
          "[pool]") {
  thread_pool pool(2);
  const std::vector<int> numbers = numbers_up_to(100);
  std::atomic<int> calls{0}, ended{0};
  int results = 0;
  const auto fail_at_five = [&](int number) {
    ++calls;
    const testing::at_exit end([&] { ++ended; });
    if (number == 5) throw std::runtime_error("number 5");
    if (number > 5) sleep();
    return number;
  };
  const auto read_all = [&] {
    for (const int number : transform_in(pool, numbers, fail_at_five, 10))
      CHECK(number == results++);
  };
  CHECK_THROWS_WITH(run_here(read_all), "number 5");
  CHECK(results == 5);
  CHECK(calls == ended);
  CHECK(calls <= 15);
}

TEST_CASE("transform_in(): the destructor of the range cancels its calls and waits for them",
          "[pool]") {
  thread_pool pool(2);
  const std::vector<int> numbers = numbers_up_to(100);
  std::atomic<int> calls{0}, ended{0};
  const auto wait = [&](int number) {
    ++calls;
    const testing::at_exit end([&] { ++ended; });
    if (number > 0) sleep();
    return number;
  };
  run_here([&] {
    for (const int number : transform_in(pool, numbers, wait, 10)) {
      CHECK(number == 0);
      break;
    }
    CHECK(calls == ended);
    const bool over = move_on_after(20ms, [&] {
      for (const int number : transform_in(pool, numbers, wait, 10)) CHECK(number == 0);
    });
    CHECK_FALSE(over);
    CHECK(calls == ended);
  });
}

TEST_CASE("transform_in() throws executor_stopped if the pool has stopped", "[pool]") {
  thread_pool pool(1);
  pool.stop();
  const std::vector<int> numbers = numbers_up_to(3);
  auto results = transform_in(pool, numbers, [](int number) { return number; });
  CHECK_THROWS_AS(results.begin(), executor_stopped);
}

TEST_CASE("transform_in() accepts views, proxies and a bounded pool", "[pool]") {
  thread_pool pool(2, "bounded", 2);
  int expected = 0;
  const auto twice = [](int number) { return 2 * number; };
  for (const int result : transform_in(pool, std::views::iota(0, 100), twice, 10))
    CHECK(result == 2 * expected++);
  CHECK(expected == 100);
  const std::vector<bool> bits{true, false, true};
  std::vector<bool> copies;
  for (const bool bit : transform_in(pool, bits, [](bool it) { return it; })) copies.push_back(bit);
  CHECK(copies == bits);
}

TEST_CASE("transform_in() throws what its range throws, and ends the calls before", "[pool]") {
  thread_pool pool(2);
  std::atomic<int> calls{0}, ended{0};
  const auto checked = std::views::iota(0, 100) | std::views::transform([](int number) {
                         if (number == 5) throw std::runtime_error("element 5");
                         return number;
                       });
  const auto wait = [&](int number) {
    ++calls;
    const testing::at_exit end([&] { ++ended; });
    sleep();
    return number;
  };
  CHECK_THROWS_WITH(run_here([&] {
                      for (const int number : transform_in(pool, checked, wait, 10)) FAIL(number);
                    }),
                    "element 5");
  CHECK(calls == ended);
}
