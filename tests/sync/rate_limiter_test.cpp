// SPDX-License-Identifier: MIT
// Rates, kept by fibers and by threads without fibers.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <motet/motet.hpp>
#include <motet/sync/rate_limiter.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEST_CASE("rate_limiter: 110 acquisitions at 100 per second with a burst of 10 take a second",
          "[rate]") {
  run([] {
    const int parts = testing::on_sim() ? 1 : 10;  // in a tenth of the time
    rate_limiter rate(static_cast<std::size_t>(100 * parts), 1s, 10);
    const auto begin = clock::now();
    for (int i = 0; i < 110; ++i) rate.acquire();
    const auto took = (clock::now() - begin) * parts;
    CHECK(took >= 999ms);
    if (testing::on_sim()) {
      CHECK(took < 1'001ms);
      CHECK_FALSE(rate.try_acquire());
    }
    sleep_for(1000ms / parts);
    CHECK(rate.try_acquire(10));
    if (testing::on_sim()) CHECK_FALSE(rate.try_acquire());
    CHECK_THROWS_AS(rate.acquire(11), std::invalid_argument);
    CHECK_THROWS_AS(rate.acquire(0), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(0, 1s), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 0s), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 1s, 0), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 1h, 10'000'000), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(2, clock::duration::max()), std::invalid_argument);
    rate_limiter boundless(std::numeric_limits<std::size_t>::max(), clock::duration::max());
    CHECK(boundless.try_acquire());
    CHECK(rate_limiter(1'000'000, 1h, 10'000'000).try_acquire());
  });
}

TEST_CASE("rate_limiter: an interrupted waiter takes nothing", "[rate]") {
  run([] {
    rate_limiter rate(1, 200ms);
    rate.acquire();
    const auto begin = clock::now();
    for (int i = 0; i < 3; ++i) CHECK_FALSE(move_on_after(1ms, [&] { rate.acquire(); }));
    rate.acquire();
    if (testing::on_sim()) CHECK(clock::now() - begin < 201ms);
  });
}

TEST_CASE("rate_limiter holds for threads without fibers, too", "[rate]") {
  rate_limiter rate(1'000, 1s);
  const auto begin = std::chrono::steady_clock::now();
  std::thread remote([&] {
    for (int i = 0; i < 10; ++i) rate.acquire();
  });
  for (int i = 0; i < 10; ++i) rate.acquire();
  remote.join();
  CHECK(std::chrono::steady_clock::now() - begin >= 19ms);
}

TEMPLATE_TEST_CASE("rate_limiter: the destructor throws in all waiters at once", "[rate]",
                   rate_limiter, motet::local::rate_limiter) {
  run([] {
    std::optional<TestType> rate(std::in_place, 1, 1h);
    rate->acquire();
    std::vector<fiber<void>> waiters;
    for (int i = 0; i < 3; ++i) waiters.push_back(spin([&] { rate->acquire(); }));
    settle();
    CHECK_FALSE(rate->try_acquire());
    const auto begin = clock::now();
    rate.reset();
    for (auto& waiter : waiters) CHECK_THROWS_AS(waiter.await(), std::logic_error);
    CHECK(clock::now() - begin < 1s);
  });
}

TEST_CASE("rate_limiter: the destructor throws in threads without fibers as well", "[rate]") {
  std::optional<rate_limiter> rate(std::in_place, 1, 1h);
  rate->acquire();
  std::atomic<int> throws{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      try {
        rate->acquire();
      } catch (const std::logic_error&) {
        ++throws;
      }
    });
  }
  std::this_thread::sleep_for(20ms);  // they wait by now
  rate.reset();
  for (std::thread& thread : threads) thread.join();
  CHECK(throws == 3);
}
