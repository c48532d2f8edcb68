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

TEMPLATE_TEST_CASE("each subscription pops every item, in order, and then the end", "[broadcast]",
                   FORMS) {
  run([] {
    std::string seen;
    group all;
    {
      typename TestType::template broadcast<char> letters(4);
      letters.push('-');  // nobody has subscribed
      for (int i = 0; i < 3; ++i) {
        all.spin([&, from = letters.subscribe()]() mutable {
          while (const auto next = from.pop()) seen += *next;
        });
      }
      auto late = letters.subscribe();
      CHECK_FALSE(late.try_pop());
      settle();
      for (const char each : {'a', 'b', 'c'}) letters.push(each);
      CHECK(late.try_pop() == 'a');
      auto copy = late;
      CHECK(late.pop() == 'b');
      CHECK(copy.pop() == 'b');
    }
    all.await_all();
    CHECK(seen == "abcabcabc");
    typename TestType::template broadcast<int>::subscription none;
    CHECK_THROWS_AS(none.pop(), std::logic_error);
    CHECK_THROWS_AS(typename TestType::template broadcast<int>(0), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("a subscription that is too slow is told how many it missed", "[broadcast]",
                   FORMS) {
  run([] {
    typename TestType::template broadcast<int> numbers(3);
    auto slow = numbers.subscribe();
    for (int i = 0; i < 5; ++i) numbers.push(i);
    try {
      slow.pop();
      FAIL("nothing was missed");
    } catch (const items_missed& lost) {
      CHECK(lost.count() == 2);
      CHECK_THAT(lost.what(), Catch::Contains("2 items"));
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

TEMPLATE_TEST_CASE("an interrupted pop of a subscription has seen nothing", "[broadcast]", FORMS) {
  run([] {
    typename TestType::template broadcast<std::string> words(2);
    auto from = words.subscribe();
    auto reader = spin([&] { from.pop(); });
    until_waiting(reader);
    reader.raise(oops());
    words.push("kept");
    CHECK_THROWS_AS(reader.await(), oops);
    CHECK(from.pop() == "kept");
  });
}

TEST_CASE("items of two threads reach fibers of two others, each once and in order",
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
        group all;
        for (int i = 0; i < 2; ++i) {
          all.spin([&, from = items.subscribe()]() mutable {
            ready.count_down();
            int next[2] = {0, 0};
            while (const auto got = from.pop()) {
              if (got->number != next[got->thread]++) ++wrong;
            }
            if (next[0] != many || next[1] != many) ++wrong;
          });
        }
        all.spin([&wrong, many, from = progress.subscribe()]() mutable {
          int last = -1;
          while (const auto now = from.next()) {
            if (*now < last) ++wrong;
            last = *now;
            if (last == many) return;
          }
        });
        all.await_all();
      });
    });
  }
  std::thread other([&] {
    ready.wait();
    for (int i = 0; i < many; ++i) items.push({1, i});
  });
  ready.wait();
  for (int i = 0; i < many; ++i) {
    items.push({0, i});
    progress.set(i + 1);
  }
  other.join();
  items.close();
  for (auto& each : threads) each.join();
  CHECK(wrong == 0);
}
