// SPDX-License-Identifier: MIT
// broadcast, and its subscriptions.
#include <atomic>
#include <cstddef>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::oops;
using testing::settle;
using testing::until_waiting;

TEMPLATE_TEST_CASE("broadcast::subscription pops every item in order, and then the end",
                   "[broadcast]", FORMS) {
  run([] {
    std::string letters_seen;
    group readers;
    {
      typename TestType::template broadcast<char> letters(4);
      letters.push('-');  // nobody has subscribed
      for (int i = 0; i < 3; ++i) {
        readers.spin([&, subscription = letters.subscribe()]() mutable {
          while (const auto next = subscription.pop()) letters_seen += *next;
        });
      }
      auto late = letters.subscribe();
      CHECK_FALSE(late.try_pop());
      settle();
      for (const char letter : {'a', 'b', 'c'}) letters.push(letter);
      CHECK(late.try_pop() == 'a');
      auto copy = late;
      CHECK(late.pop() == 'b');
      CHECK(copy.pop() == 'b');
    }
    readers.await_all();
    CHECK(letters_seen == "abcabcabc");
    typename TestType::template broadcast<int>::subscription empty;
    CHECK_THROWS_AS(empty.pop(), std::logic_error);
    CHECK_THROWS_AS(typename TestType::template broadcast<int>(0), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("broadcast::subscription throws items_missed with the number of items missed",
                   "[broadcast]", FORMS) {
  run([] {
    typename TestType::template broadcast<int> numbers(3);
    auto slow = numbers.subscribe();
    for (int i = 0; i < 5; ++i) numbers.push(i);
    try {
      slow.pop();
      FAIL("nothing was missed");
    } catch (const items_missed& error) {
      CHECK(error.count() == 2);
      CHECK_THAT(error.what(), Catch::Contains("2 items"));
    }
    CHECK(slow.pop() == 2);
    for (int i = 5; i < 9; ++i) numbers.push(i);
    CHECK_THROWS_AS(slow.try_pop(), items_missed);
    CHECK(slow.try_pop() == 6);
    numbers.close();
    numbers.close();
    CHECK_THROWS_AS(numbers.push(9), channel_closed);
    CHECK(slow.pop() == 7);
    CHECK(slow.pop() == 8);
    CHECK_FALSE(slow.pop());
    CHECK_FALSE(numbers.subscribe().pop());
  });
}

TEMPLATE_TEST_CASE("broadcast::subscription loses no item when a pop is interrupted", "[broadcast]",
                   FORMS) {
  run([] {
    typename TestType::template broadcast<std::string> words(2);
    auto subscription = words.subscribe();
    auto reader = spin([&] { subscription.pop(); });
    until_waiting(reader);
    reader.raise(oops());
    words.push("kept");
    CHECK_THROWS_AS(reader.await(), oops);
    CHECK(subscription.pop() == "kept");
  });
}

TEST_CASE("broadcast passes items from two threads to fibers of two others, in order",
          "[broadcast][threads]") {
  const int many = static_cast<int>(testing::scaled(100'000, testing::under_tsan ? 1'000 : 10'000));
  struct item {
    int thread;
    int number;
  };
  broadcast<item> items(static_cast<std::size_t>(2 * many));
  watch<int> progress(0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  latch ready(4);
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      run([&] {
        group readers;
        for (int i = 0; i < 2; ++i) {
          readers.spin([&, subscription = items.subscribe()]() mutable {
            ready.count_down();
            int next[2] = {0, 0};
            while (const auto value = subscription.pop()) {
              if (value->number != next[value->thread]++) ++wrong;
            }
            if (next[0] != many || next[1] != many) ++wrong;
          });
        }
        readers.spin([&wrong, many, subscription = progress.subscribe()]() mutable {
          int last = -1;
          while (const auto state = subscription.next()) {
            if (*state < last) ++wrong;
            last = *state;
            if (last == many) return;
          }
        });
        readers.await_all();
      });
    });
  }
  std::thread remote([&] {
    ready.wait();
    for (int i = 0; i < many; ++i) items.push({1, i});
  });
  ready.wait();
  for (int i = 0; i < many; ++i) {
    items.push({0, i});
    progress.set(i + 1);
  }
  remote.join();
  items.close();
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
