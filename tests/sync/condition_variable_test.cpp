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

TEMPLATE_TEST_CASE("a condition variable wakes in order, and holds the lock again", "[condition]",
                   FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable changed;
    std::string order;
    group all;
    for (char name : {'a', 'b', 'c', 'd'}) {
      all.spin([&, name] {
        std::unique_lock in(lock);
        changed.wait(in);
        CHECK(in.owns_lock());
        order += name;
      });
    }
    settle();
    changed.notify_one();
    settle();
    CHECK(order == "a");
    changed.notify_all();
    all.await_all();
    CHECK(order == "abcd");
  });
}

TEMPLATE_TEST_CASE("a notification passes by who has given up, and cuts nothing of his short",
                   "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable changed;
    const auto wait = [&] {
      std::unique_lock in(lock);
      changed.wait(in);
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
    changed.notify_one();
    stays.await();
    CHECK(gives_up.await() >= 20ms);
  });
}

TEMPLATE_TEST_CASE("an interrupted wait for a condition has the lock while it unwinds",
                   "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable changed;
    bool owned = false;
    auto waiting = spin([&] {
      std::unique_lock in(lock);
      try {
        changed.wait(in, [] { return false; });
      } catch (const cancelled&) {
        owned = in.owns_lock() && !lock.try_lock();
        throw;
      }
    });
    settle();
    lock.lock();
    waiting.cancel("enough");
    settle();
    CHECK_FALSE(owned);  // it waits for the lock, and nothing interrupts that
    lock.unlock();
    CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
    CHECK(owned);
  });
}

TEMPLATE_TEST_CASE("a condition variable refuses a lock that is not held", "[condition]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::condition_variable changed;
    CHECK_THROWS_AS(changed.wait(lock), std::logic_error);
    lock.lock();  // wait() locks before it throws, as always
  });
}

TEST_CASE("a lock whose unlocking switches loses no notification", "[condition]") {
  run([] {
    struct slow {
      mutex own;
      void lock() { own.lock(); }
      void unlock() {
        own.unlock();
        sleep_for(2ms);
      }
    } held;
    condition_variable changed;
    const auto begin = clock::now();
    auto waiting = spin([&] {
      held.lock();
      changed.wait(held);
      held.own.unlock();
    });
    settle();
    changed.notify_one();
    waiting.await();
    CHECK(clock::now() - begin >= 2ms);
  });
}

TEST_CASE("a notification that nobody waits for is not kept", "[condition_variable]") {
  run([] {
    mutex guard;
    condition_variable changed;
    changed.notify_one();
    auto waiting = spin([&] {
      std::unique_lock held(guard);
      changed.wait(held);
    });
    testing::settle();
    CHECK(waiting.state() == fiber_state::waiting);
    changed.notify_one();  // the mutex is free
    waiting.await();
  });
}
