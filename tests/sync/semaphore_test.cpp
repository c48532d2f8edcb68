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

TEMPLATE_TEST_CASE("a semaphore gives its permits in order", "[semaphore]", FORMS) {
  run([] {
    typename TestType::semaphore permits(2);
    std::string order;
    group all;
    permits.acquire(2);
    CHECK_FALSE(permits.try_acquire());
    all.spin([&] {
      permits.acquire(3);
      order += 'L';
    });
    all.spin([&] {
      permits.acquire();
      order += 's';
    });
    settle();
    permits.release(2);
    settle();
    CHECK(order.empty());  // whoever wants little does not overtake who wants much
    CHECK_FALSE(permits.try_acquire());
    permits.release(2);
    all.await_all();
    CHECK(order == "Ls");
  });
}

TEMPLATE_TEST_CASE("whoever stands behind an interrupted one gets the permits", "[semaphore]",
                   FORMS) {
  run([] {
    typename TestType::semaphore permits(1);
    auto large = spin([&] { permits.acquire(5); });
    bool got = false;
    auto small = spin([&] {
      permits.acquire();
      got = true;
    });
    settle();
    CHECK_FALSE(got);
    large.cancel("too much");
    small.await();
    CHECK(got);
    CHECK_THROWS_AS(large.await(), fiber_cancelled);
  });
}

TEMPLATE_TEST_CASE("ten jobs of 100 ms with a semaphore of 2 take 500 ms, with more later less",
                   "[semaphore]", FORMS) {
  run([] {
    const auto time = [](bool more) {
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
      if (more) {
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

TEMPLATE_TEST_CASE("a limit can fall below what is taken", "[semaphore]", FORMS) {
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

TEST_CASE("more permits than the limit can be acquired once they have been added", "[semaphore]") {
  run([] {
    semaphore permits(1);
    auto greedy = spin([&] { permits.acquire(3); });
    auto behind = spin([&] { permits.acquire(); });
    testing::settle();
    CHECK(greedy.state() == fiber_state::waiting);
    permits.set_limit(3);
    greedy.await();
    CHECK(behind.state() == fiber_state::waiting);
    permits.release(3);
    behind.await();
  });
}
