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

TEMPLATE_TEST_CASE("barrier holds its parties round after round", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    std::string order;
    int lasts = 0;
    group parties;
    for (const char name : {'a', 'b', 'c'}) {
      parties.spin([&, name] {
        for (int round = 0; round < 3; ++round) {
          order += name;
          if (line.arrive_and_wait()) ++lasts;
        }
      });
    }
    parties.await_all();
    CHECK(order == "abccabbca");  // the last one goes on without waiting
    CHECK(lasts == 3);
    CHECK_THROWS_AS(typename TestType::barrier(0), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("barrier::arrive_and_wait() does not count an arrival that was interrupted",
                   "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    auto victim = spin([&] { line.arrive_and_wait(); });
    until_waiting(victim);
    victim.raise(oops());
    CHECK_THROWS_AS(victim.await(), oops);
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

TEMPLATE_TEST_CASE(
    "barrier::arrive_and_wait() counts an interrupted arrival that completed its round",
    "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    bool passed = false;
    auto victim = spin([&] {
      CHECK_FALSE(line.arrive_and_wait());
      passed = true;
      snooze();  // throws
    });
    until_waiting(victim);
    victim.raise(oops());
    CHECK(line.arrive_and_wait());  // before the other fiber has run
    CHECK_THROWS_AS(victim.await(), oops);
    CHECK(passed);
  });
}

TEMPLATE_TEST_CASE("barrier: a party may leave for good", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    group parties;
    int rounds = 0;
    for (int i = 0; i < 2; ++i) {
      parties.spin([&] {
        for (int round = 0; round < 2; ++round) {
          if (line.arrive_and_wait()) ++rounds;
        }
      });
    }
    settle();
    CHECK(rounds == 0);
    line.arrive_and_drop();
    parties.await_all();
    CHECK(rounds == 1);  // the first was ended by the one that left
    line.arrive_and_drop();
    CHECK(line.arrive_and_wait());  // alone
    line.arrive_and_drop();
    CHECK_THROWS_AS(line.arrive_and_wait(), std::logic_error);
    CHECK_THROWS_AS(line.arrive_and_drop(), std::logic_error);
  });
}
