// SPDX-License-Identifier: MIT
// Locks, events and permits between the fibers of one thread: order, hand-over, interruption, and
// misuse. Each test is run for the shared form and for the local one.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <motet/condition_variable.hpp>
#include <motet/event.hpp>
#include <motet/motet.hpp>
#include <motet/notification.hpp>
#include <motet/recursive_mutex.hpp>
#include <motet/semaphore.hpp>
#include <motet/shared_mutex.hpp>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

namespace {

struct shared_forms {
  using mutex = motet::mutex;
  using recursive_mutex = motet::recursive_mutex;
  using shared_mutex = motet::shared_mutex;
  using condition_variable = motet::condition_variable;
  using semaphore = motet::semaphore;
  using event = motet::event;
  using notification = motet::notification;
};

struct local_forms {
  using mutex = motet::local::mutex;
  using recursive_mutex = motet::local::recursive_mutex;
  using shared_mutex = motet::local::shared_mutex;
  using condition_variable = motet::local::condition_variable;
  using semaphore = motet::local::semaphore;
  using event = motet::local::event;
  using notification = motet::local::notification;
};

}  // namespace

#define FORMS shared_forms, local_forms

TEMPLATE_TEST_CASE("a mutex is handed on in order of arrival", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    std::string order;
    lock.lock();
    group waiting;
    for (char name : {'a', 'b', 'c'}) {
      waiting.spin([&, name] {
        const std::lock_guard in(lock);
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
    waiting.await_all();
    CHECK(order == "aabbccm");
  });
}

TEMPLATE_TEST_CASE("locking a free mutex does not switch", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    bool ran = false;
    auto other = spin([&] { ran = true; });
    for (int i = 0; i < 100; ++i) {
      lock.lock();
      lock.unlock();
    }
    CHECK_FALSE(ran);
    other.await();
  });
}

TEMPLATE_TEST_CASE("an interrupted waiter does not get the mutex, the next one does", "[mutex]",
                   FORMS) {
  run([] {
    typename TestType::mutex lock;
    std::string order;
    lock.lock();
    auto first = spin([&] {
      const std::lock_guard in(lock);
      order += '1';
    });
    auto second = spin([&] {
      const std::lock_guard in(lock);
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

TEMPLATE_TEST_CASE("who was given a mutex and is interrupted then has it", "[mutex]", FORMS) {
  run([] {
    typename TestType::mutex lock;
    bool had = false;
    lock.lock();
    auto waiting = spin([&] {
      const std::lock_guard in(lock);
      had = true;
      snooze();  // delivers
    });
    settle();
    lock.unlock();
    waiting.cancel("too late");
    CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
    CHECK(had);
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEMPLATE_TEST_CASE("lock delivers what is pending even if it need not wait", "[mutex]", FORMS) {
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

TEMPLATE_TEST_CASE("several that want the same two locks in either order all get them", "[mutex]",
                   FORMS) {
  const auto all_get = [](auto& a, auto& b) {
    int done = 0;
    const auto hold = [&done](auto& first, auto& second) {
      for (int round = 0; round < 100; ++round) {
        const std::scoped_lock both(first, second);
        snooze();
        ++done;
      }
    };
    run([&] {
      group all;
      for (int i = 0; i < 7; ++i) {
        all.spin([&, i] { i % 2 == 0 ? hold(a, b) : hold(b, a); });
      }
      CHECK(move_on_after(10s, [&] { all.await_all(); }));
    });
    CHECK(done == 700);
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

TEMPLATE_TEST_CASE("who may look at what std::lock gave up is served before those behind",
                   "[mutex]", FORMS) {
  const auto order_at = [](auto& lock) {
    std::string order;
    run([&] {
      typename TestType::mutex taken;
      typename TestType::mutex third;
      auto holder = spin([&] {
        taken.lock();
        suspend();
      });
      lock.lock();
      group waiting;
      for (const char name : {'B', 'C', 'D'}) {
        waiting.spin([&, name] {
          const std::lock_guard in(lock);
          order += name;
        });
      }
      settle();
      CHECK_FALSE(taken.try_lock());
      lock.unlock();  // as std::lock does: B may look
      CHECK(lock.try_lock());
      third.lock();  // an end to backing off
      lock.unlock();
      waiting.await_all();
      holder.schedule();
      holder.await();
    });
    return order;
  };
  typename TestType::mutex alone;
  typename TestType::shared_mutex shared;
  CHECK(order_at(alone) == "BCD");
  CHECK(order_at(shared) == "BCD");
}

TEMPLATE_TEST_CASE("readers go on beside those that want two locks at once", "[mutex]", FORMS) {
  typename TestType::shared_mutex a;
  typename TestType::shared_mutex b;
  int done = 0;
  run([&] {
    group all;
    const auto repeat = [&](auto section) {
      all.spin([&, section] {
        for (int round = 0; round < 100; ++round) section();
      });
    };
    const auto write = [&](auto& first, auto& second) {
      const std::scoped_lock both(first, second);
      snooze();
      ++done;
    };
    const auto read = [&](auto& one) {
      const std::shared_lock reading(one);
      snooze();
      ++done;
    };
    for (int i = 0; i < 3; ++i) {
      repeat([&] { write(a, b); });
      repeat([&] { write(b, a); });
      repeat([&] { read(a); });
      repeat([&] { read(b); });
    }
    CHECK(move_on_after(10s, [&] { all.await_all(); }));
  });
  CHECK(done == 1200);
}

TEST_CASE("a lock that is older than the fibers of its thread can be given up", "[mutex]") {
  std::thread([] {
    mutex lock;
    shared_mutex both;
    const std::lock_guard held(lock);
    const std::unique_lock writing(both);
    sleep_for(1us);  // begins a runtime
    CHECK_THROWS_AS(lock.lock(), std::logic_error);
  }).join();
}

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

TEMPLATE_TEST_CASE("misuse of a mutex is a logic_error", "[mutex]", FORMS) {
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
    typename TestType::shared_mutex both;
    CHECK_THROWS_AS(both.unlock(), std::logic_error);
    CHECK_THROWS_AS(both.unlock_shared(), std::logic_error);
    both.lock();
    CHECK_THROWS_AS(both.lock(), std::logic_error);
    CHECK_THROWS_AS(both.lock_shared(), std::logic_error);
    both.unlock();
    CHECK_THROWS_AS(typename TestType::semaphore(-1), std::invalid_argument);
    typename TestType::semaphore permits(1);
    CHECK_THROWS_AS(permits.acquire(0), std::invalid_argument);
    CHECK_THROWS_AS(permits.try_acquire(-1), std::invalid_argument);
    CHECK_THROWS_AS(permits.release(0), std::invalid_argument);
    CHECK_THROWS_AS(permits.set_limit(-1), std::invalid_argument);
    constexpr std::ptrdiff_t all = std::numeric_limits<std::ptrdiff_t>::max();
    CHECK_THROWS_AS(permits.release(all), std::invalid_argument);
    permits.release();
    CHECK_THROWS_AS(permits.set_limit(all), std::invalid_argument);
    CHECK(permits.try_acquire(2));
    CHECK_FALSE(permits.try_acquire());
    permits.set_limit(all);
    CHECK(permits.try_acquire(all - 1));
    CHECK_FALSE(permits.try_acquire());
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

TEMPLATE_TEST_CASE("a recursive mutex is given up when it was unlocked as often", "[mutex]",
                   FORMS) {
  run([] {
    typename TestType::recursive_mutex lock;
    bool entered = false;
    lock.lock();
    lock.lock();
    CHECK(lock.try_lock());
    auto other = spin([&] {
      const std::lock_guard in(lock);
      entered = true;
    });
    for (int i = 0; i < 3; ++i) {
      settle();
      CHECK_FALSE(entered);
      lock.unlock();
    }
    other.await();
    CHECK(entered);
  });
}

TEMPLATE_TEST_CASE("readers share, a writer is not starved by them", "[shared_mutex]", FORMS) {
  run([] {
    typename TestType::shared_mutex lock;
    std::string order;
    group all;
    const auto reader = [&](char name) {
      all.spin([&, name] {
        const std::shared_lock in(lock);
        order += name;
        snooze();
        snooze();
        order += name;
      });
    };
    reader('a');
    reader('b');
    snooze();
    all.spin([&] {
      const std::unique_lock in(lock);
      order += 'W';
      snooze();
      order += 'W';
    });
    snooze();
    reader('c');
    reader('d');
    all.await_all();
    CHECK(order == "ababWWcdcd");
  });
}

TEMPLATE_TEST_CASE("readers behind a writer who gives up go on", "[shared_mutex]", FORMS) {
  run([] {
    typename TestType::shared_mutex lock;
    lock.lock_shared();
    auto writer = spin([&] { lock.lock(); });
    bool read = false;
    auto reader = spin([&] {
      const std::shared_lock in(lock);
      read = true;
    });
    settle();
    CHECK_FALSE(read);
    CHECK_FALSE(lock.try_lock_shared());
    writer.cancel("gives up");
    reader.await();
    CHECK(read);
    lock.unlock_shared();
    CHECK(lock.try_lock());
    lock.unlock();
    CHECK_THROWS_AS(writer.await(), fiber_cancelled);
  });
}

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

TEMPLATE_TEST_CASE("an event is sticky, a notification is not", "[event]", FORMS) {
  run([] {
    typename TestType::event happened;
    typename TestType::notification called;
    CHECK_FALSE(called.notify_one());
    CHECK_FALSE(called.notify_all());
    happened.set();
    happened.wait();
    CHECK(happened.is_set());
    happened.reset();
    std::string order;
    group all;
    for (char name : {'a', 'b', 'c'}) {
      all.spin([&, name] {
        called.wait();
        order += name;
        happened.wait();
        order += name;
      });
    }
    settle();
    CHECK(called.notify_one());
    CHECK(order.empty());  // the notifier goes on first
    settle();
    CHECK(order == "a");
    CHECK(called.notify_all());
    settle();
    CHECK(order == "abc");
    happened.set();
    all.await_all();
    CHECK(order == "abcabc");
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
