// SPDX-License-Identifier: MIT
// recursive_mutex.
#include <motet/motet.hpp>
#include <mutex>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::settle;

TEMPLATE_TEST_CASE("recursive_mutex is released after as many unlocks as locks", "[mutex]", FORMS) {
  run([] {
    typename TestType::recursive_mutex lock;
    bool entered = false;
    lock.lock();
    lock.lock();
    CHECK(lock.try_lock());
    auto rival = spin([&] {
      const std::lock_guard guard(lock);
      entered = true;
    });
    for (int i = 0; i < 3; ++i) {
      settle();
      CHECK_FALSE(entered);
      lock.unlock();
    }
    rival.await();
    CHECK(entered);
  });
}
