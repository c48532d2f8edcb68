// SPDX-License-Identifier: MIT
// What primitives say of themselves: how many wait, what is taken and what is left.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

#include "catch.hpp"
#include "quiet.hpp"

using namespace motet;
using namespace std::chrono_literals;

TEMPLATE_TEST_CASE("mutex::stats() tells whether it is held and how many wait", "[stats]", mutex,
                   local::mutex, recursive_mutex, local::recursive_mutex) {
  run([] {
    TestType lock;
    CHECK(!lock.stats().held);
    group several;
    {
      const std::lock_guard guard(lock);
      for (int i = 0; i < 3; ++i) several.spin([&] { const std::lock_guard turn(lock); });
      snooze();
      CHECK(lock.stats().held);
      CHECK(lock.stats().waiting == 3);
      several.spin([&] { const std::lock_guard turn(lock); }).cancel();
      snooze();
      CHECK(lock.stats().waiting == 3);
    }
    several.await_all();
    CHECK(!lock.stats().held);
    CHECK(lock.stats().waiting == 0);
  });
}

TEMPLATE_TEST_CASE("shared_mutex::stats() tells how many readers it has", "[stats]", shared_mutex,
                   local::shared_mutex) {
  run([] {
    TestType lock;
    group several;
    {
      const std::shared_lock reader(lock), another(lock);
      several.spin([&] { const std::lock_guard writer(lock); });
      several.spin([&] { const std::shared_lock late(lock); });
      snooze();
      CHECK(!lock.stats().held);
      CHECK(lock.stats().readers == 2);
      CHECK(lock.stats().waiting == 2);
    }
    several.await_all();
    const std::lock_guard writer(lock);
    CHECK(lock.stats().held);
    CHECK(lock.stats().readers == 0);
  });
}

TEMPLATE_TEST_CASE("semaphore::stats() tells how many permits are free", "[stats]", semaphore,
                   local::semaphore) {
  run([] {
    TestType permits(3);
    permits.acquire(2);
    auto waiter = spin([&] { permits.acquire(2); });
    snooze();
    CHECK(permits.stats().limit == 3);
    CHECK(permits.stats().free == 1);
    CHECK(permits.stats().waiting == 1);
    permits.set_limit(1);
    CHECK(permits.stats().free == -1);
    permits.set_limit(4);
    waiter.await();
    CHECK(permits.stats().free == 0);
    CHECK(permits.stats().waiting == 0);
  });
}

TEMPLATE_TEST_CASE("channel::stats() tells how many items it has and how many wait at each end",
                   "[stats]", channel<int>, local::channel<int>) {
  run([] {
    TestType items(2);
    group several;
    several.spin([&] { items.pop(); });
    snooze();
    CHECK(items.stats().popping == 1);
    for (int i = 0; i < 5; ++i) several.spin([&, i] { items.push(i); });
    snooze();
    snooze();
    CHECK(items.size() == 2);
    CHECK(items.stats().items == 2);
    CHECK(items.stats().pushing == 2);
    CHECK(items.stats().popping == 0);
    CHECK(!items.stats().closed);
    for (int i = 0; i < 4; ++i) items.pop();
    several.await_all();
    items.close();
    CHECK(items.stats().closed);
    CHECK(items.size() == 0);
  });
}

TEMPLATE_TEST_CASE("resource_pool::stats() tells how many slots are lent and how many idle",
                   "[stats]", resource_pool<int>, local::resource_pool<int>) {
  run([] {
    TestType pool(2, [] { return 1; });
    CHECK(pool.stats().limit == 2);
    CHECK(pool.stats().idle == 0);
    group several;
    {
      const auto slot = pool.acquire();
      std::optional second(pool.acquire());
      several.spin([&] { const auto late = pool.acquire(); });
      snooze();
      CHECK(pool.stats().lent == 2);
      CHECK(pool.stats().waiting == 1);
      second.reset();
      several.await_all();
      CHECK(pool.stats().lent == 1);
      CHECK(pool.stats().idle == 1);
    }
    CHECK(pool.stats().lent == 0);
    CHECK(pool.stats().idle == 2);
  });
}

TEMPLATE_TEST_CASE("rate_limiter::stats() tells how many permits fit and how many wait", "[stats]",
                   rate_limiter, local::rate_limiter) {
  run([] {
    TestType limiter(1, 1h, 5);
    CHECK(limiter.stats().burst == 5);
    CHECK(limiter.stats().free == 5);
    limiter.acquire(4);
    CHECK(limiter.stats().free == 1);
    limiter.acquire();
    group several;
    for (int i = 0; i < 2; ++i) several.spin([&] { limiter.acquire(); });
    snooze();
    CHECK(limiter.stats().free == 0);
    CHECK(limiter.stats().waiting == 2);
    several.cancel();
    several.await_all();
    CHECK(limiter.stats().waiting == 0);
  });
}

TEST_CASE("stats() of a primitive may be called by any thread at any time", "[stats]") {
  run(testing::quiet(), [] {
    channel<int> items(4);
    mutex lock;
    std::thread asking([&] {
      std::size_t peak = 0;
      while (!items.stats().closed) {
        peak = std::max(peak, items.size() + lock.stats().waiting);
      }
      if (peak > 4 + 4) std::abort();
    });
    group several;
    for (int i = 0; i < 4; ++i) {
      several.spin([&] {
        for (int round = 0; round < 1'000; ++round) {
          const std::lock_guard guard(lock);
          items.push(round);
        }
      });
    }
    for (int i = 0; i < 4'000; ++i) items.pop();
    several.await_all();
    items.close();
    asking.join();
  });
}
