// SPDX-License-Identifier: MIT
// watch, and its subscriptions.
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::until_waiting;

TEMPLATE_TEST_CASE("watch shows the latest value, once to each subscription", "[watch]", FORMS) {
  run([] {
    std::optional<typename TestType::template watch<int>> level(1);
    auto subscription = level->subscribe();
    CHECK(subscription.next() == 1);
    CHECK_FALSE(subscription.try_next());
    level->set(2);
    level->set(3);
    CHECK(level->get() == 3);
    CHECK(subscription.next() == 3);
    int next = 0;
    auto waits = spin([&] { next = subscription.next().value_or(-1); });
    until_waiting(waits);
    level->set(3);  // no other value, but a newer one
    waits.await();
    CHECK(next == 3);
    auto second = level->subscribe();
    level->set(4);
    level.reset();
    CHECK(second.next() == 4);
    CHECK_FALSE(second.next());
    CHECK(subscription.try_next() == 4);
    CHECK_FALSE(subscription.next());
    typename TestType::template watch<int>::subscription empty;
    CHECK_THROWS_AS(empty.next(), std::logic_error);
  });
}
