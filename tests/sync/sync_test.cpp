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

TEST_CASE("a deadline ends a loop of calls that never wait", "[interruption]") {
  if (testing::on_sim()) return;  // no time passes there
  run([] {
    mutex lock;
    channel<int> numbers(1);
    long rounds = 0;
    const bool ended = move_on_after(20ms, [&] {
      for (;;) {
        const std::lock_guard in(lock);
        numbers.push(1);
        numbers.pop();
        ++rounds;
      }
    });
    CHECK_FALSE(ended);
    CHECK(rounds > 0);
  });
}

TEST_CASE("a thread whose fibers are over waits for nothing any more", "[threads]") {
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

TEMPLATE_TEST_CASE("very many that are interrupted while they wait", "[interruption]", FORMS) {
  run([] {
    typename TestType::semaphore permits(0);
    typename TestType::shared_mutex lock;
    lock.lock();
    group waiting;
    const int many = testing::under_tsan ? 1'000 : 4'000;
    for (int i = 0; i < many / 2; ++i) {
      waiting.spin([&] { permits.acquire(); });
      waiting.spin([&] { lock.lock_shared(); });
    }
    settle();
    waiting.cancel();
    waiting.await_all();
    permits.release();
    CHECK(permits.try_acquire());
    lock.unlock();
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("what is destroyed throws in whoever waits for it", "[destroyed]", FORMS) {
  run([] {
    group waiting;
    int told = 0;
    const auto expects = [&](auto wait) {
      waiting.spin([&told, wait] {
        try {
          wait();
        } catch (const std::logic_error&) {
          ++told;
        }
      });
    };
    auto lock = std::make_unique<typename TestType::mutex>();
    auto both = std::make_unique<typename TestType::shared_mutex>();
    auto happened = std::make_unique<typename TestType::event>();
    auto called = std::make_unique<typename TestType::notification>();
    auto permits = std::make_unique<typename TestType::semaphore>(0);
    lock->lock();
    both->lock();
    expects([&] { lock->lock(); });
    expects([&] { both->lock(); });
    expects([&] { both->lock_shared(); });
    expects([&] { happened->wait(); });
    expects([&] { called->wait(); });
    expects([&] { permits->acquire(); });
    auto changed = std::make_unique<typename TestType::condition_variable>();
    typename TestType::mutex held;
    expects([&] {
      std::unique_lock in(held);
      try {
        changed->wait(in);
      } catch (...) {
        CHECK_FALSE(in.owns_lock());
        throw;
      }
    });
    settle();
    lock.reset();
    both.reset();
    happened.reset();
    called.reset();
    permits.reset();
    changed.reset();
    waiting.await_all();
    CHECK(told == 7);
  });
}

TEMPLATE_TEST_CASE("destroyed after its waiter was interrupted and before that has run",
                   "[destroyed]", FORMS) {
  run([] {
    auto happened = std::make_unique<typename TestType::event>();
    auto waiting = spin([&] { happened->wait(); });
    settle();
    waiting.cancel("no more");
    happened.reset();
    CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
  });
}

TEMPLATE_TEST_CASE("a deadline ends a wait for anything", "[interruption]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    typename TestType::semaphore permits(0);
    typename TestType::event happened;
    typename TestType::notification called;
    group holding;
    holding.spin([&] {
      const std::lock_guard in(lock);
      sleep();
    });
    snooze();
    CHECK_FALSE(move_on_after(1ms, [&] { lock.lock(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { permits.acquire(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { happened.wait(); }));
    CHECK_FALSE(move_on_after(1ms, [&] { called.wait(); }));
    CHECK_FALSE(called.notify_one());
    permits.release();
    CHECK(permits.try_acquire());
  });
}

TEST_CASE("what is local is refused on a second thread", "[local]") {
  run([] {
    local::mutex lock;
    local::event happened;
    lock.lock();
    happened.set();
    std::thread other([&] {
      CHECK_THROWS_AS(lock.try_lock(), std::logic_error);
      CHECK_THROWS_AS(lock.lock(), std::logic_error);
      CHECK_THROWS_AS(lock.unlock(), std::logic_error);
      CHECK_THROWS_AS(happened.set(), std::logic_error);
      CHECK_THROWS_AS(happened.is_set(), std::logic_error);
    });
    other.join();
    lock.unlock();
  });
}

TEST_CASE("something local may outlive a runtime of its thread", "[local]") {
  local::mutex lock;
  for (int i = 0; i < 2; ++i) {
    run([&] {
      const std::lock_guard in(lock);
      snooze();
    });
  }
}

TEST_CASE("a main fiber that waits for what nobody will do is told", "[deadlock]") {
  run([] {
    event never;
    CHECK_THROWS_AS(never.wait(), deadlock);
  });
}

TEST_CASE("a mutex and a condition variable may go together", "[destroyed]") {
  run([] {
    struct monitor {
      mutex lock;
      condition_variable changed;
    };
    auto both = std::make_unique<monitor>();
    auto waiting = spin([&] {
      std::unique_lock in(both->lock);
      both->changed.wait(in);
    });
    settle();
    both.reset();
    CHECK_THROWS_AS(waiting.await(), std::logic_error);

    auto lock = std::make_unique<mutex>();
    condition_variable changed;
    auto locking = spin([&] {
      std::unique_lock in(*lock);
      changed.wait(in);
    });
    settle();
    lock->lock();
    changed.notify_one();
    settle();
    lock.reset();  // while the notified one waits to have it again
    CHECK_THROWS_AS(locking.await(), std::logic_error);
  });
}
