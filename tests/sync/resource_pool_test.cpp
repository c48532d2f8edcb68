// SPDX-License-Identifier: MIT
// Pools of things that are lent and given back.
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <motet/motet.hpp>
#include <motet/sync/resource_pool.hpp>
#include <optional>
#include <stdexcept>

#include "catch.hpp"
#include "settle.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEST_CASE("resource_pool makes a resource when it must, and lends it again", "[pool]") {
  run([] {
    int count = 0;
    resource_pool<int> pool(2, [&] { return ++count; });
    {
      auto first = pool.acquire();
      auto second = pool.acquire();
      CHECK(*first == 1);
      CHECK(*second == 2);
      CHECK_FALSE(move_on_after(1ms, [&] { (void)pool.acquire(); }));
      auto waiter = spin([&] { return *pool.acquire(); });
      settle();
      second.discard();
      CHECK_THROWS_AS(*second, std::logic_error);
      CHECK_THROWS_AS(second.discard(), std::logic_error);
      CHECK(waiter.await() == 3);
    }
    auto source = pool.acquire();
    const auto target = std::move(source);
    CHECK(count == 3);
    CHECK_THROWS_AS(resource_pool<int>(0, [] { return 1; }), std::invalid_argument);
    CHECK_THROWS_AS(resource_pool<int>(1, nullptr), std::invalid_argument);
    constexpr std::size_t maximum = std::numeric_limits<std::size_t>::max();
    for (const std::size_t too_many : {maximum, maximum / 4}) {
      CHECK_THROWS_AS(resource_pool<int>(too_many, [] { return 1; }), std::invalid_argument);
    }
  });
}

TEST_CASE("resource_pool replaces an unhealthy resource, and a failure costs no slot", "[pool]") {
  run([] {
    int count = 0;
    bool works = false;
    resource_pool<int> pool(
        1,
        [&] {
          sleep_for(1ms);
          if (!works) throw std::runtime_error("refused");
          return ++count;
        },
        [](const int& n) {
          snooze();
          if (n == 2) throw std::runtime_error("asked in vain");
          return n > 2;
        });
    for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(pool.acquire(), std::runtime_error);
    CHECK_FALSE(move_on_after(100us, [&] { (void)pool.acquire(); }));
    works = true;
    CHECK(*pool.acquire() == 1);
    CHECK(*pool.acquire() == 2);  // 1 was not healthy
    CHECK_THROWS_AS(pool.acquire(), std::runtime_error);
    CHECK(*pool.acquire() == 3);
    CHECK(*pool.acquire() == 3);
  });
}

TEMPLATE_TEST_CASE("resource_pool: the destructor throws in its waiters; lent resources stay valid",
                   "[pool]", resource_pool<std::shared_ptr<int>>,
                   motet::local::resource_pool<std::shared_ptr<int>>) {
  run([] {
    std::weak_ptr<int> last;
    std::optional<TestType> pool(std::in_place, 2, [&] {
      auto resource = std::make_shared<int>(7);
      last = resource;
      return resource;
    });
    {
      const auto lent = pool->acquire();
      std::weak_ptr<int> idle;
      {
        const auto second_slot = pool->acquire();
        idle = last;
      }
      CHECK_FALSE(idle.expired());
      std::optional loan(pool->acquire());
      auto waiter = spin([&] { (void)pool->acquire(); });
      settle();
      pool.reset();
      CHECK_THROWS_AS(waiter.await(), std::logic_error);
      CHECK_FALSE(idle.expired());
      loan.reset();
      CHECK(idle.expired());
      CHECK(**lent == 7);
    }
    CHECK(last.expired());
  });
}
