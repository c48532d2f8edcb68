// SPDX-License-Identifier: MIT
// shared_mutex.
#include <chrono>
#include <motet/motet.hpp>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

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
