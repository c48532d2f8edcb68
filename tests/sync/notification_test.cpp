// SPDX-License-Identifier: MIT
// notification.
#include <motet/motet.hpp>
#include <string>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::settle;

TEMPLATE_TEST_CASE("notification: notify_one() and notify_all() reach only fibers that wait",
                   "[notification]", FORMS) {
  run([] {
    typename TestType::notification called;
    CHECK_FALSE(called.notify_one());
    CHECK_FALSE(called.notify_all());
    std::string order;
    group all;
    for (char name : {'a', 'b', 'c'}) {
      all.spin([&, name] {
        called.wait();
        order += name;
        called.wait();
        order += name;
      });
    }
    settle();
    CHECK(called.notify_one());
    CHECK(order.empty());  // the notifier goes on first
    settle();
    CHECK(order == "a");
    CHECK(called.notify_all());  // 'a' waits again, behind the others
    settle();
    CHECK(order == "abca");
    CHECK(called.notify_all());
    all.await_all();
    CHECK(order == "abcabc");
    CHECK_FALSE(called.notify_one());
  });
}
