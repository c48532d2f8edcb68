// SPDX-License-Identifier: MIT
// What all primitives have in common: deadlines, interruption, their own end, and their thread's.
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/sync/condition_variable.hpp>
#include <motet/sync/event.hpp>
#include <motet/sync/notification.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/sync/shared_mutex.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEST_CASE("move_on_after() ends a loop of synchronisation calls that never wait",
          "[interruption]") {
  if (testing::on_sim()) return;  // no time passes there
  run([] {
    mutex lock;
    channel<int> numbers(1);
    long rounds = 0;
    const bool ended = move_on_after(20ms, [&] {
      for (;;) {
        const std::lock_guard guard(lock);
        numbers.push(1);
        numbers.pop();
        ++rounds;
      }
    });
    CHECK_FALSE(ended);
    CHECK(rounds > 0);
  });
}

TEST_CASE("channel::pop() is refused in a thread whose fibers have ended", "[threads]") {
  static channel<int> numbers;
  static std::atomic<bool> refused{false};
  struct late {
    ~late() {
      try {
        numbers.pop();
      } catch (const std::logic_error&) {
        refused = true;
      }
    }
  };
  std::thread([] {
    static thread_local late last;
    static_cast<void>(&last);
    sleep_for(1us);
  }).join();
  CHECK(refused);
}

TEMPLATE_TEST_CASE("semaphore and shared_mutex: thousands of waiters are interrupted at once",
                   "[interruption]", FORMS) {
  run([] {
    typename TestType::semaphore permits(0);
    typename TestType::shared_mutex lock;
    lock.lock();
    group waiters;
    const int many = testing::under_tsan ? 1'000 : 4'000;
    for (int i = 0; i < many / 2; ++i) {
      waiters.spin([&] { permits.acquire(); });
      waiters.spin([&] { lock.lock_shared(); });
    }
    settle();
    waiters.cancel();
    waiters.await_all();
    permits.release();
    CHECK(permits.try_acquire());
    lock.unlock();
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("~channel(), ~mutex() and other destructors throw in their waiters",
                   "[destroyed]", FORMS) {
  run([] {
    group waiters;
    int throws = 0;
    const auto expects = [&](auto wait) {
      waiters.spin([&throws, wait] {
        try {
          wait();
        } catch (const std::logic_error&) {
          ++throws;
        }
      });
    };
    auto lock = std::make_unique<typename TestType::mutex>();
    auto rwlock = std::make_unique<typename TestType::shared_mutex>();
    auto happened = std::make_unique<typename TestType::event>();
    auto news = std::make_unique<typename TestType::notification>();
    auto permits = std::make_unique<typename TestType::semaphore>(0);
    lock->lock();
    rwlock->lock();
    expects([&] { lock->lock(); });
    expects([&] { rwlock->lock(); });
    expects([&] { rwlock->lock_shared(); });
    expects([&] { happened->wait(); });
    expects([&] { news->wait(); });
    expects([&] { permits->acquire(); });
    auto condition = std::make_unique<typename TestType::condition_variable>();
    typename TestType::mutex locked;
    expects([&] {
      std::unique_lock guard(locked);
      try {
        condition->wait(guard);
      } catch (...) {
        CHECK_FALSE(guard.owns_lock());
        throw;
      }
    });
    settle();
    lock.reset();
    rwlock.reset();
    happened.reset();
    news.reset();
    permits.reset();
    condition.reset();
    waiters.await_all();
    CHECK(throws == 7);
  });
}

TEMPLATE_TEST_CASE("event can be destroyed before its interrupted waiter has run", "[destroyed]",
                   FORMS) {
  run([] {
    auto happened = std::make_unique<typename TestType::event>();
    auto waiter = spin([&] { happened->wait(); });
    settle();
    waiter.cancel("no more");
    happened.reset();
    CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
  });
}

TEMPLATE_TEST_CASE("move_on_after() ends a wait for any primitive", "[interruption]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::semaphore permits(0);
    typename TestType::event happened;
    typename TestType::notification news;
    group holding;
    holding.spin([&] {
      const std::lock_guard guard(lock);
      sleep();
    });
    snooze();
    CHECK_FALSE(move_on_after(1ms, [&] { lock.lock(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { permits.acquire(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { happened.wait(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { news.wait(); }));
    CHECK_FALSE(news.notify_one());
    permits.release();
    CHECK(permits.try_acquire());
  });
}

TEST_CASE("local primitives are refused on a second thread", "[local]") {
  run([] {
    local::mutex lock;
    local::event happened;
    lock.lock();
    happened.set();
    std::thread remote([&] {
      CHECK_THROWS_AS(lock.try_lock(), std::logic_error);
      CHECK_THROWS_AS(lock.lock(), std::logic_error);
      CHECK_THROWS_AS(lock.unlock(), std::logic_error);
      CHECK_THROWS_AS(happened.set(), std::logic_error);
      CHECK_THROWS_AS(happened.is_set(), std::logic_error);
    });
    remote.join();
    lock.unlock();
  });
}

TEST_CASE("local primitives may outlive a runtime of their thread", "[local]") {
  local::mutex lock;
  for (int i = 0; i < 2; ++i) {
    run([&] {
      const std::lock_guard guard(lock);
      snooze();
    });
  }
}

TEST_CASE("deadlock is thrown if the main fiber waits for an event that nobody can set",
          "[deadlock]") {
  run([] {
    event never;
    CHECK_THROWS_AS(never.wait(), deadlock);
  });
}

TEST_CASE("condition_variable may be destroyed together with its mutex", "[destroyed]") {
  run([] {
    struct monitor {
      mutex lock;
      condition_variable condition;
    };
    auto pair = std::make_unique<monitor>();
    auto waiter = spin([&] {
      std::unique_lock guard(pair->lock);
      pair->condition.wait(guard);
    });
    settle();
    pair.reset();
    CHECK_THROWS_AS(waiter.await(), std::logic_error);

    auto lock = std::make_unique<mutex>();
    condition_variable condition;
    auto locking = spin([&] {
      std::unique_lock guard(*lock);
      condition.wait(guard);
    });
    settle();
    lock->lock();
    condition.notify_one();
    settle();
    lock.reset();  // while the notified one waits to have it again
    CHECK_THROWS_AS(locking.await(), std::logic_error);
  });
}
