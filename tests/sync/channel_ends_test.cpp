// SPDX-License-Identifier: MIT
// Senders and receivers; and what a channel does with many items at once.
#include <memory>
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
using testing::settle;
using testing::until_waiting;

TEMPLATE_TEST_CASE("the last sender closes the channel", "[channel]", FORMS) {
  run([] {
    auto ends = TestType::template make_channel<int>(1);
    auto& to = ends.first;
    auto& from = ends.second;
    int sum = 0;
    group all;
    for (int i = 1; i <= 3; ++i) {
      all.spin([mine = to, i] {
        mine.push(i);
        mine.push(10 * i);
      });
    }
    all.spin([&sum, mine = from] {
      for (const int each : mine) sum += each;
    });
    CHECK(to);
    to = {};
    CHECK_FALSE(to);
    CHECK_THROWS_AS(to.push(1), std::logic_error);
    all.await_all();
    CHECK(sum == 66);
    CHECK_FALSE(from.pop());
    CHECK_FALSE(from.try_pop());
  });
}

TEMPLATE_TEST_CASE("with the last receiver go the items, and senders are told", "[channel]",
                   FORMS) {
  run([] {
    auto ends = TestType::template make_channel<std::shared_ptr<int>>(1);
    auto& to = ends.first;
    auto& from = ends.second;
    const auto item = std::make_shared<int>(1);
    to.push(item);
    auto waits = spin([mine = to, item] { mine.push(item); });
    until_waiting(waits);
    auto copy = from;
    from = {};
    CHECK_FALSE(to.try_push(item));
    copy = {};
    CHECK_THROWS_AS(waits.await(), channel_closed);
    waits = {};
    settle();
    CHECK(item.use_count() == 1);
    CHECK_THROWS_AS(to.push(item), channel_closed);
    CHECK_THROWS_AS(to.try_push(item), channel_closed);
    CHECK_THROWS_AS(copy.pop(), std::logic_error);
    auto more = TestType::template make_channel<int>(unbounded);
    for (int i = 0; i < 1'000; ++i) more.first.push(i);
    CHECK(more.second.pop() == 0);
  });
}

TEST_CASE("ends of a channel on several threads", "[channel][threads]") {
  const int many = static_cast<int>(testing::scaled(100'000, testing::under_tsan ? 1'000 : 10'000));
  auto ends = make_channel<int>(8);
  auto& to = ends.first;
  long sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([mine = to, many] {
      for (int each = 1; each <= many; ++each) mine.push(each);
    });
  }
  to = {};
  run([&, mine = std::move(ends.second)] {
    for (const int each : mine) sum += each;
  });
  for (auto& each : threads) each.join();
  CHECK(sum == static_cast<long>(many) * (many + 1));
}

TEMPLATE_TEST_CASE("clear drops what is in a channel, and lets in what waits", "[channel]", FORMS) {
  run([] {
    typename TestType::template channel<int> items(3);
    std::string log;
    auto pushes = spin([&] {
      for (int i = 1; i <= 5; ++i) {
        items.push(i);
        log += std::to_string(i);
      }
    });
    until_waiting(pushes);
    CHECK(items.size() == 3);
    CHECK(items.clear() == 3);
    log += 'c';
    pushes.await();
    CHECK(log == "123c45");
    CHECK(items.pop() == 4);
    CHECK(items.pop() == 5);
    CHECK(items.clear() == 0);
    typename TestType::template channel<int> by_hand;
    CHECK(by_hand.clear() == 0);
  });
}

TEMPLATE_TEST_CASE("a channel that has reserved room keeps it", "[channel]", FORMS) {
  run([] {
    typename TestType::template channel<int> items(unbounded);
    items.reserve(1'000);
    items.reserve(10);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 1'000; ++i) items.push(i);
      for (int i = 0; i < 1'000; ++i) CHECK(items.pop() == i);
    }
    typename TestType::template channel<int> bounded(2);
    bounded.reserve(1'000'000'000);
    items.close();
    CHECK_FALSE(items.pop());
  });
}
