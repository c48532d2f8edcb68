// SPDX-License-Identifier: MIT
// barrier.
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::oops;
using testing::settle;
using testing::until_waiting;

TEMPLATE_TEST_CASE("a barrier holds its parties round after round", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    std::string order;
    int lasts = 0;
    group all;
    for (const char name : {'a', 'b', 'c'}) {
      all.spin([&, name] {
        for (int round = 0; round < 3; ++round) {
          order += name;
          if (line.arrive_and_wait()) ++lasts;
        }
      });
    }
    all.await_all();
    CHECK(order == "abccabbca");  // the last one goes on without waiting
    CHECK(lasts == 3);
    CHECK_THROWS_AS(typename TestType::barrier(0), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("an interrupted arrival at a barrier has not happened", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    auto gone = spin([&] { line.arrive_and_wait(); });
    until_waiting(gone);
    gone.raise(oops());
    CHECK_THROWS_AS(gone.await(), oops);
    bool passed = false;
    auto first = spin([&] {
      line.arrive_and_wait();
      passed = true;
    });
    settle();
    CHECK_FALSE(passed);
    CHECK(line.arrive_and_wait());
    first.await();
    CHECK(passed);
  });
}

TEMPLATE_TEST_CASE("an arrival that its round needed stands, though it was interrupted",
                   "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    bool passed = false;
    auto interrupted = spin([&] {
      CHECK_FALSE(line.arrive_and_wait());
      passed = true;
      snooze();  // throws
    });
    until_waiting(interrupted);
    interrupted.raise(oops());
    CHECK(line.arrive_and_wait());  // before the other fiber has run
    CHECK_THROWS_AS(interrupted.await(), oops);
    CHECK(passed);
  });
}

TEMPLATE_TEST_CASE("a party may leave a barrier for good", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    group all;
    int rounds = 0;
    for (int i = 0; i < 2; ++i) {
      all.spin([&] {
        for (int round = 0; round < 2; ++round) {
          if (line.arrive_and_wait()) ++rounds;
        }
      });
    }
    settle();
    CHECK(rounds == 0);
    line.arrive_and_drop();
    all.await_all();
    CHECK(rounds == 1);  // the first was ended by the one that left
    line.arrive_and_drop();
    CHECK(line.arrive_and_wait());  // alone
    line.arrive_and_drop();
    CHECK_THROWS_AS(line.arrive_and_wait(), std::logic_error);
    CHECK_THROWS_AS(line.arrive_and_drop(), std::logic_error);
  });
}
