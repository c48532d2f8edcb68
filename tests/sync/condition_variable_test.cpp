// SPDX-License-Identifier: MIT
// Condition variables: order, interruption, and the lock that is held again.
#include <chrono>
#include <motet/motet.hpp>
#include <motet/sync/condition_variable.hpp>
#include <mutex>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEMPLATE_TEST_CASE("condition_variable wakes waiters in order, and they hold the lock again",
                   "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable condition;
    std::string order;
    group waiters;
    for (char name : {'a', 'b', 'c', 'd'}) {
      waiters.spin([&, name] {
        std::unique_lock guard(lock);
        condition.wait(guard);
        CHECK(guard.owns_lock());
        order += name;
      });
    }
    settle();
    condition.notify_one();
    settle();
    CHECK(order == "a");
    condition.notify_all();
    waiters.await_all();
    CHECK(order == "abcd");
  });
}

TEMPLATE_TEST_CASE("condition_variable: a notification skips waiters that have given up",
                   "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable condition;
    const auto wait = [&] {
      std::unique_lock guard(lock);
      condition.wait(guard);
    };
    auto gives_up = spin([&] {
      CHECK_FALSE(move_on_after(1ms, wait));
      const auto begin = clock::now();
      sleep_for(20ms);
      return clock::now() - begin;
    });
    settle();
    auto stays = spin(wait);
    sleep_for(5ms);
    condition.notify_one();
    stays.await();
    CHECK(gives_up.await() >= 20ms);
  });
}

TEMPLATE_TEST_CASE("condition_variable: an interrupted wait has the lock while it unwinds",
                   "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable condition;
    bool owned = false;
    auto waiter = spin([&] {
      std::unique_lock guard(lock);
      try {
        condition.wait(guard, [] { return false; });
      } catch (const cancelled&) {
        owned = guard.owns_lock() && !lock.try_lock();
        throw;
      }
    });
    settle();
    lock.lock();
    waiter.cancel("enough");
    settle();
    CHECK_FALSE(owned);  // it waits for the lock, and nothing interrupts that
    lock.unlock();
    CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
    CHECK(owned);
  });
}

TEMPLATE_TEST_CASE("condition_variable refuses a lock that is not held", "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable condition;
    CHECK_THROWS_AS(condition.wait(lock), std::logic_error);
    lock.lock();  // wait() locks before it throws, as always
  });
}

TEST_CASE("condition_variable loses no notification if unlocking switches", "[condition]") {
  run([] {
    struct slow {
      mutex inner;
      void lock() { inner.lock(); }
      void unlock() {
        inner.unlock();
        sleep_for(2ms);
      }
    } own_lock;
    condition_variable condition;
    const auto begin = clock::now();
    auto waiter = spin([&] {
      own_lock.lock();
      condition.wait(own_lock);
      own_lock.inner.unlock();
    });
    settle();
    condition.notify_one();
    waiter.await();
    CHECK(clock::now() - begin >= 2ms);
  });
}

TEST_CASE("condition_variable does not keep a notification that nobody waits for",
          "[condition_variable]") {
  run([] {
    mutex guard;
    condition_variable condition;
    condition.notify_one();
    auto waiter = spin([&] {
      std::unique_lock own_lock(guard);
      condition.wait(own_lock);
    });
    testing::settle();
    CHECK(waiter.state() == fiber_state::waiting);
    condition.notify_one();  // the mutex is free
    waiter.await();
  });
}
