// SPDX-License-Identifier: MIT
// event.
#include <motet/motet.hpp>
#include <string>

#include "catch.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::settle;

TEMPLATE_TEST_CASE("event: set() lets all waiters and later ones pass until reset()", "[event]",
                   FORMS) {
  run([] {
    typename TestType::event happened;
    happened.set();
    happened.wait();
    CHECK(happened.is_set());
    happened.reset();
    CHECK_FALSE(happened.is_set());
    std::string order;
    group waiters;
    for (char name : {'a', 'b', 'c'}) {
      waiters.spin([&, name] {
        happened.wait();
        order += name;
      });
    }
    settle();
    CHECK(order.empty());
    happened.set();
    CHECK(order.empty());  // who sets it goes on first
    waiters.await_all();
    CHECK(order == "abc");
    happened.wait();
  });
}
