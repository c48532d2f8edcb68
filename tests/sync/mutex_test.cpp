// SPDX-License-Identifier: MIT
// mutex.
#include <chrono>
#include <cstddef>
#include <limits>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEMPLATE_TEST_CASE("mutex is handed on in order of arrival", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    std::string order;
    lock.lock();
    group waiters;
    for (char name : {'a', 'b', 'c'}) {
      waiters.spin([&, name] {
        const std::lock_guard guard(lock);
        order += name;
        snooze();
        order += name;
      });
    }
    settle();
    lock.unlock();
    // It has been handed over: who comes later cannot take it.
    CHECK_FALSE(lock.try_lock());
    lock.lock();
    order += 'm';
    lock.unlock();
    waiters.await_all();
    CHECK(order == "aabbccm");
  });
}

TEMPLATE_TEST_CASE("mutex::lock() does not switch if the mutex is free", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    bool ran = false;
    auto neighbour = spin([&] { ran = true; });
    for (int i = 0; i < 100; ++i) {
      lock.lock();
      lock.unlock();
    }
    CHECK_FALSE(ran);
    neighbour.await();
  });
}

TEMPLATE_TEST_CASE("mutex: an interrupted waiter does not get the mutex, the next one does",
                   "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    std::string order;
    lock.lock();
    auto first = spin([&] {
      const std::lock_guard guard(lock);
      order += '1';
    });
    auto second = spin([&] {
      const std::lock_guard guard(lock);
      order += '2';
    });
    settle();
    first.cancel("not needed");
    lock.unlock();  // before the first has noticed
    second.await();
    CHECK(order == "2");
    CHECK_THROWS_AS(first.await(), fiber_cancelled);
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("mutex: an interruption after the hand-over does not take the mutex away",
                   "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    bool had = false;
    lock.lock();
    auto waiter = spin([&] {
      const std::lock_guard guard(lock);
      had = true;
      snooze();  // delivers
    });
    settle();
    lock.unlock();
    waiter.cancel("too late");
    CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
    CHECK(had);
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("mutex::lock() throws a pending interruption even if it need not wait",
                   "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    auto fiber = spin([&] {
      shield([] { snooze(); });
      lock.lock();
    });
    snooze();
    fiber.cancel("now");
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("mutex: std::lock() on two of them in either order serves all callers",
                   "[mutex]", FORMS) {
  const auto all_get = [](auto& a, auto& b) {
    int count = 0;
    const auto hold = [&count](auto& first, auto& second) {
      for (int round = 0; round < 100; ++round) {
        const std::scoped_lock guard(first, second);
        snooze();
        ++count;
      }
    };
    run([&] {
      group members;
      for (int i = 0; i < 7; ++i) {
        members.spin([&, i] { i % 2 == 0 ? hold(a, b) : hold(b, a); });
      }
      CHECK(move_on_after(10s, [&] { members.await_all(); }));
    });
    CHECK(count == 700);
  };
  typename TestType::mutex a;
  typename TestType::mutex b;
  typename TestType::recursive_mutex deep;
  typename TestType::shared_mutex c;
  typename TestType::shared_mutex d;
  all_get(a, b);
  all_get(c, d);
  all_get(a, c);
  all_get(d, deep);
}

TEMPLATE_TEST_CASE("mutex: a waiter that retries after std::lock() gave it up is served first",
                   "[mutex]", FORMS) {
  const auto order_at = [](auto& lock) {
    std::string order;
    run([&] {
      typename TestType::mutex second_lock;
      typename TestType::mutex third;
      auto holder = spin([&] {
        second_lock.lock();
        suspend();
      });
      lock.lock();
      group waiters;
      for (const char name : {'B', 'C', 'D'}) {
        waiters.spin([&, name] {
          const std::lock_guard guard(lock);
          order += name;
        });
      }
      settle();
      CHECK_FALSE(second_lock.try_lock());
      lock.unlock();  // as std::lock does: B may look
      CHECK(lock.try_lock());
      third.lock();  // an end to backing off
      lock.unlock();
      waiters.await_all();
      holder.schedule();
      holder.await();
    });
    return order;
  };
  typename TestType::mutex alone;
  typename TestType::shared_mutex rwlock;
  CHECK(order_at(alone) == "BCD");
  CHECK(order_at(rwlock) == "BCD");
}

TEST_CASE("mutex: a lock older than the fibers of its thread can be released", "[mutex]") {
  std::thread([] {
    mutex lock;
    shared_mutex rwlock;
    const std::lock_guard guard(lock);
    const std::unique_lock write_guard(rwlock);
    sleep_for(1us);  // begins a runtime
    CHECK_THROWS_AS(lock.lock(), std::logic_error);
  }).join();
}

TEMPLATE_TEST_CASE("mutex throws std::logic_error on misuse", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    CHECK_THROWS_AS(lock.unlock(), std::logic_error);
    lock.lock();
    CHECK_THROWS_AS(lock.lock(), std::logic_error);
    auto thief = spin([&] { lock.unlock(); });
    CHECK_THROWS_AS(thief.await(), std::logic_error);
    CHECK_FALSE(lock.try_lock());
    lock.unlock();
    typename TestType::mutex never_unlocked;
    spin([&] { never_unlocked.lock(); }).await();
    auto heir = spin([&] { never_unlocked.unlock(); });  // where the dead one's memory was
    CHECK_THROWS_AS(heir.await(), std::logic_error);
    typename TestType::recursive_mutex deep;
    CHECK_THROWS_AS(deep.unlock(), std::logic_error);
    typename TestType::shared_mutex guard;
    CHECK_THROWS_AS(guard.unlock(), std::logic_error);
    CHECK_THROWS_AS(guard.unlock_shared(), std::logic_error);
    guard.lock();
    CHECK_THROWS_AS(guard.lock(), std::logic_error);
    CHECK_THROWS_AS(guard.lock_shared(), std::logic_error);
    guard.unlock();
    CHECK_THROWS_AS(typename TestType::semaphore(-1), std::invalid_argument);
    typename TestType::semaphore permits(1);
    CHECK_THROWS_AS(permits.acquire(0), std::invalid_argument);
    CHECK_THROWS_AS(permits.try_acquire(-1), std::invalid_argument);
    CHECK_THROWS_AS(permits.release(0), std::invalid_argument);
    CHECK_THROWS_AS(permits.set_limit(-1), std::invalid_argument);
    constexpr std::ptrdiff_t maximum = std::numeric_limits<std::ptrdiff_t>::max();
    CHECK_THROWS_AS(permits.release(maximum), std::invalid_argument);
    permits.release();
    CHECK_THROWS_AS(permits.set_limit(maximum), std::invalid_argument);
    CHECK(permits.try_acquire(2));
    CHECK_FALSE(permits.try_acquire());
    permits.set_limit(maximum);
    CHECK(permits.try_acquire(maximum - 1));
    CHECK_FALSE(permits.try_acquire());
  });
}
