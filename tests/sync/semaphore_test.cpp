// SPDX-License-Identifier: MIT
// Semaphores: permits in order, limits that change.
#include <chrono>
#include <motet/motet.hpp>
#include <motet/sync/semaphore.hpp>
#include <string>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEMPLATE_TEST_CASE("semaphore gives its permits in order of arrival", "[semaphore]", FORMS) {
  run([] {
    typename TestType::semaphore permits(2);
    std::string order;
    group waiters;
    permits.acquire(2);
    CHECK_FALSE(permits.try_acquire());
    waiters.spin([&] {
      permits.acquire(3);
      order += 'L';
    });
    waiters.spin([&] {
      permits.acquire();
      order += 's';
    });
    settle();
    permits.release(2);
    settle();
    CHECK(order.empty());  // whoever wants little does not overtake who wants much
    CHECK_FALSE(permits.try_acquire());
    permits.release(2);
    waiters.await_all();
    CHECK(order == "Ls");
  });
}

TEMPLATE_TEST_CASE("semaphore: an interrupted waiter lets the next one have the permits",
                   "[semaphore]", FORMS) {
  run([] {
    typename TestType::semaphore permits(1);
    auto large = spin([&] { permits.acquire(5); });
    bool acquired = false;
    auto small = spin([&] {
      permits.acquire();
      acquired = true;
    });
    settle();
    CHECK_FALSE(acquired);
    large.cancel("too much");
    small.await();
    CHECK(acquired);
    CHECK_THROWS_AS(large.await(), fiber_cancelled);
  });
}

TEMPLATE_TEST_CASE(
    "semaphore(2) limits ten jobs of 10 ms to 50 ms; release(n) later makes it faster",
    "[semaphore]", FORMS) {
  run([] {
    const auto time = [](bool extended) {
      typename TestType::semaphore permits(2);
      const auto begin = clock::now();
      group jobs;
      for (int i = 0; i < 10; ++i) {
        jobs.spin([&] {
          permits.acquire();
          sleep_for(10ms);
          permits.release();
        });
      }
      if (extended) {
        sleep_for(5ms);
        permits.set_limit(8);
      }
      jobs.await_all();
      return clock::now() - begin;
    };
    CHECK(time(false) >= 50ms);
    const auto quick = time(true);
    CHECK(quick >= 20ms);
    if (testing::on_sim()) CHECK(quick < 21ms);
  });
}

TEMPLATE_TEST_CASE("semaphore: the limit may fall below the number of permits taken", "[semaphore]",
                   FORMS) {
  run([] {
    typename TestType::semaphore permits(3);
    permits.acquire(3);
    permits.set_limit(1);
    permits.release(2);
    CHECK_FALSE(permits.try_acquire());
    permits.release();
    CHECK(permits.try_acquire());
    CHECK_FALSE(permits.try_acquire());
    permits.release();
  });
}

TEST_CASE("semaphore: more permits than the limit can be acquired once they have been added",
          "[semaphore]") {
  run([] {
    semaphore permits(1);
    auto greedy = spin([&] { permits.acquire(3); });
    auto second = spin([&] { permits.acquire(); });
    testing::settle();
    CHECK(greedy.state() == fiber_state::waiting);
    permits.set_limit(3);
    greedy.await();
    CHECK(second.state() == fiber_state::waiting);
    permits.release(3);
    second.await();
  });
}
