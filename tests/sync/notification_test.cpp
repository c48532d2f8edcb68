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
    typename TestType::notification news;
    CHECK_FALSE(news.notify_one());
    CHECK_FALSE(news.notify_all());
    std::string order;
    group waiters;
    for (char name : {'a', 'b', 'c'}) {
      waiters.spin([&, name] {
        news.wait();
        order += name;
        news.wait();
        order += name;
      });
    }
    settle();
    CHECK(news.notify_one());
    CHECK(order.empty());  // the notifier goes on first
    settle();
    CHECK(order == "a");
    CHECK(news.notify_all());  // 'a' waits again, behind the others
    settle();
    CHECK(order == "abca");
    CHECK(news.notify_all());
    waiters.await_all();
    CHECK(order == "abcabc");
    CHECK_FALSE(news.notify_one());
  });
}
