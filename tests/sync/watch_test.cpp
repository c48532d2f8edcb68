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

TEMPLATE_TEST_CASE("a watch shows the latest value, once to each subscription", "[watch]", FORMS) {
  run([] {
    std::optional<typename TestType::template watch<int>> level(1);
    auto seen = level->subscribe();
    CHECK(seen.next() == 1);
    CHECK_FALSE(seen.try_next());
    level->set(2);
    level->set(3);
    CHECK(level->get() == 3);
    CHECK(seen.next() == 3);
    int next = 0;
    auto waits = spin([&] { next = seen.next().value_or(-1); });
    until_waiting(waits);
    level->set(3);  // no other value, but a newer one
    waits.await();
    CHECK(next == 3);
    auto other = level->subscribe();
    level->set(4);
    level.reset();
    CHECK(other.next() == 4);
    CHECK_FALSE(other.next());
    CHECK(seen.try_next() == 4);
    CHECK_FALSE(seen.next());
    typename TestType::template watch<int>::subscription none;
    CHECK_THROWS_AS(none.next(), std::logic_error);
  });
}
