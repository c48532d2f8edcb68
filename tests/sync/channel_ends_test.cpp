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

TEMPLATE_TEST_CASE("sender: the last sender closes the channel", "[channel]", FORMS) {
  run([] {
    auto ends = TestType::template make_channel<int>(1);
    auto& tx = ends.first;
    auto& rx = ends.second;
    int sum = 0;
    group senders;
    for (int i = 1; i <= 3; ++i) {
      senders.spin([end = tx, i] {
        end.push(i);
        end.push(10 * i);
      });
    }
    senders.spin([&sum, end = rx] {
      for (const int number : end) sum += number;
    });
    CHECK(tx);
    tx = {};
    CHECK_FALSE(tx);
    CHECK_THROWS_AS(tx.push(1), std::logic_error);
    senders.await_all();
    CHECK(sum == 66);
    CHECK_FALSE(rx.pop());
    CHECK_FALSE(rx.try_pop());
  });
}

TEMPLATE_TEST_CASE("receiver: the last receiver drops the items and ends the senders", "[channel]",
                   FORMS) {
  run([] {
    auto ends = TestType::template make_channel<std::shared_ptr<int>>(1);
    auto& tx = ends.first;
    auto& rx = ends.second;
    const auto item = std::make_shared<int>(1);
    tx.push(item);
    auto waits = spin([end = tx, item] { end.push(item); });
    until_waiting(waits);
    auto copy = rx;
    rx = {};
    CHECK_FALSE(tx.try_push(item));
    copy = {};
    CHECK_THROWS_AS(waits.await(), channel_closed);
    waits = {};
    settle();
    CHECK(item.use_count() == 1);
    CHECK_THROWS_AS(tx.push(item), channel_closed);
    CHECK_THROWS_AS(tx.try_push(item), channel_closed);
    CHECK_THROWS_AS(copy.pop(), std::logic_error);
    auto second = TestType::template make_channel<int>(unbounded);
    for (int i = 0; i < 1'000; ++i) second.first.push(i);
    CHECK(second.second.pop() == 0);
  });
}

TEST_CASE("sender and receiver work on several threads", "[channel][threads]") {
  const int many = static_cast<int>(testing::scaled(100'000, testing::under_tsan ? 1'000 : 10'000));
  auto ends = make_channel<int>(8);
  auto& tx = ends.first;
  long sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([end = tx, many] {
      for (int number = 1; number <= many; ++number) end.push(number);
    });
  }
  tx = {};
  run([&, end = std::move(ends.second)] {
    for (const int number : end) sum += number;
  });
  for (auto& thread : threads) thread.join();
  CHECK(sum == static_cast<long>(many) * (many + 1));
}

TEMPLATE_TEST_CASE("channel::clear() drops the items and admits waiting ones", "[channel]", FORMS) {
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

TEMPLATE_TEST_CASE("channel::reserve() keeps the reserved room", "[channel]", FORMS) {
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
