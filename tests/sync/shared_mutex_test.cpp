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

TEMPLATE_TEST_CASE("shared_mutex: readers go on beside std::lock() on two of them", "[mutex]",
                   FORMS) {
  typename TestType::shared_mutex a;
  typename TestType::shared_mutex b;
  int count = 0;
  run([&] {
    group members;
    const auto repeat = [&](auto section) {
      members.spin([&, section] {
        for (int round = 0; round < 100; ++round) section();
      });
    };
    const auto write = [&](auto& first, auto& second) {
      const std::scoped_lock guard(first, second);
      snooze();
      ++count;
    };
    const auto read = [&](auto& target) {
      const std::shared_lock read_guard(target);
      snooze();
      ++count;
    };
    for (int i = 0; i < 3; ++i) {
      repeat([&] { write(a, b); });
      repeat([&] { write(b, a); });
      repeat([&] { read(a); });
      repeat([&] { read(b); });
    }
    CHECK(move_on_after(10s, [&] { members.await_all(); }));
  });
  CHECK(count == 1200);
}

TEMPLATE_TEST_CASE("shared_mutex: readers share, and a writer is not starved", "[shared_mutex]",
                   FORMS) {
  run([] {
    typename TestType::shared_mutex lock;
    std::string order;
    group fibers;
    const auto reader = [&](char name) {
      fibers.spin([&, name] {
        const std::shared_lock guard(lock);
        order += name;
        snooze();
        snooze();
        order += name;
      });
    };
    reader('a');
    reader('b');
    snooze();
    fibers.spin([&] {
      const std::unique_lock guard(lock);
      order += 'W';
      snooze();
      order += 'W';
    });
    snooze();
    reader('c');
    reader('d');
    fibers.await_all();
    CHECK(order == "ababWWcdcd");
  });
}

TEMPLATE_TEST_CASE("shared_mutex: readers behind a writer that gives up go on", "[shared_mutex]",
                   FORMS) {
  run([] {
    typename TestType::shared_mutex lock;
    lock.lock_shared();
    auto writer = spin([&] { lock.lock(); });
    bool was_read = false;
    auto reader = spin([&] {
      const std::shared_lock guard(lock);
      was_read = true;
    });
    settle();
    CHECK_FALSE(was_read);
    CHECK_FALSE(lock.try_lock_shared());
    writer.cancel("gives up");
    reader.await();
    CHECK(was_read);
    lock.unlock_shared();
    CHECK(lock.try_lock());
    lock.unlock();
    CHECK_THROWS_AS(writer.await(), fiber_cancelled);
  });
}
