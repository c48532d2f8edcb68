// SPDX-License-Identifier: MIT
// Fibers: starting, states, order, awaiting, and what a handle tells.
#include <motet/motet.hpp>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::words;
using numbers = std::vector<int>;

TEST_CASE("a spun fiber runs when it is its turn, and its value is awaited", "[fiber]") {
  run([] {
    int seen = 0;
    auto f = spin([&] {
      seen = 42;
      return 42;
    });
    CHECK(f.state() == fiber_state::runnable);
    CHECK(seen == 0);
    CHECK(f.await() == 42);
    CHECK(seen == 42);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("an exception reaches whoever awaits", "[fiber]") {
  run([] {
    auto f = spin([]() -> int { throw std::runtime_error("x"); });
    CHECK_THROWS_AS(f.await(), std::runtime_error);
    CHECK_THROWS_AS(f.await(), std::runtime_error);
  });
}

TEST_CASE("snoozing fibers take turns", "[fiber]") {
  run([] {
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      spin([&order, i] {
        for (int round = 0; round < 3; ++round) {
          snooze();
          order.push_back(i);
        }
      });
    }
    suspend();
    CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2});
  });
}

TEST_CASE("a fiber is runnable, running, waiting and in the end dead", "[state]") {
  run([] {
    int turns = 0;
    auto f = spin([&turns] {
      const fiber_ref me = current();
      for (int i = 0; i < 3; ++i) {
        CHECK(me.state() == fiber_state::running);
        snooze();
        ++turns;
      }
      suspend();
    });
    CHECK(f.state() == fiber_state::runnable);
    CHECK(current().state() == fiber_state::running);
    snooze();
    CHECK(f.state() == fiber_state::runnable);
    CHECK(turns == 0);
    while (turns < 3) snooze();
    CHECK(f.state() == fiber_state::waiting);
    f.stop();
    CHECK(f.state() == fiber_state::runnable);
    snooze();
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("the main fiber waits like any other", "[state]") {
  run([] {
    const fiber_ref main = current();
    auto f = spin([main] { return main.state(); });
    CHECK(f.await() == fiber_state::waiting);
    auto g = spin([main] { return main.state(); });
    snooze();
    CHECK(g.await() == fiber_state::runnable);
  });
}

TEST_CASE("spin never runs a fiber at once", "[order]") {
  run([] {
    words trace;
    auto outer = spin([&] {
      spin([&] { trace.emplace_back("inner"); });
      trace.emplace_back("spun");
      snooze();
      trace.emplace_back("outer");
    });
    CHECK(trace.empty());
    outer.await();
    CHECK(trace == words{"spun", "inner", "outer"});
  });
}

TEST_CASE("fibers run in the order in which they were spun", "[order]") {
  run([] {
    numbers seen, expected;
    for (int i = 0; i < 1000; ++i) {
      spin([&seen, i] { seen.push_back(i); });
      expected.push_back(i);
    }
    snooze();
    CHECK(seen == expected);
  });
}

TEST_CASE("snooze goes behind everybody who is runnable", "[order]") {
  run([] {
    words trace;
    spin([&] {
      trace.emplace_back("a");
      snooze();
      trace.emplace_back("a");
    });
    spin([&] { trace.emplace_back("b"); });
    spin([&] { trace.emplace_back("c"); });
    suspend();
    CHECK(trace == words{"a", "b", "c", "a"});
  });
}

TEST_CASE("a fiber spun by a fiber stands behind those that snoozed before", "[order]") {
  run([] {
    words trace;
    spin([&] {
      trace.emplace_back("a");
      snooze();
      trace.emplace_back("a again");
    });
    spin([&] {
      trace.emplace_back("b");
      spin([&] { trace.emplace_back("c"); });
      snooze();
      trace.emplace_back("b again");
    });
    suspend();
    CHECK(trace == words{"a", "b", "a again", "c", "b again"});
  });
}

TEST_CASE("an empty handle is a logic error to use, and false", "[handle]") {
  const fiber_ref none;
  CHECK(!none);
  CHECK_THROWS_AS(none.state(), std::logic_error);
  CHECK_THROWS_AS(none.schedule(), std::logic_error);
  CHECK_THROWS_AS(none.raise(std::runtime_error("x")), std::logic_error);
  CHECK_THROWS_AS(none.cancel(), std::logic_error);
  CHECK_THROWS_AS(none.await(), std::logic_error);
}

TEST_CASE("fibers have names, numbers of their own, a home and a time of birth", "[handle]") {
  run([] {
    const auto before = clock::now();
    auto a = spin({.name = "alto"}, [] { return current().id(); });
    auto b = spin([] { return current().id(); });
    CHECK(a.name() == "alto");
    CHECK(b.name().empty());
    CHECK(a.id() != b.id());
    CHECK(a.id() != current().id());
    CHECK(a.await() == a.id());
    CHECK(b.await() == b.id());
    CHECK(a.home() == std::this_thread::get_id());
    CHECK(a.spun_at() <= clock::now());
    CHECK(a.spun_at() > before - 1min);
    CHECK(fiber_ref(a) == fiber_ref(a));
    CHECK(!(fiber_ref(a) == fiber_ref(b)));
  });
}

TEST_CASE("whoever awaits runs after the fiber, and gets its value", "[await]") {
  run([] {
    words trace;
    auto a = spin([&]() -> std::string {
      trace.emplace_back("a1");
      snooze();
      trace.emplace_back("a2");
      return "ra";
    });
    auto b = spin([&] {
      trace.emplace_back("b1");
      trace.push_back(a.await());
      trace.emplace_back("b2");
    });
    b.await();
    CHECK(trace == words{"a1", "b1", "a2", "ra", "b2"});
  });
}

TEST_CASE("awaiting a dead fiber is a switchpoint", "[await]") {
  run([] {
    auto dead = spin([] { return 3; });
    dead.await();
    words trace;
    spin([&] { trace.emplace_back("other"); });
    trace.push_back(std::to_string(dead.await()));
    CHECK(trace == words{"other", "3"});
  });
}

TEST_CASE("awaiters of one fiber go on in the order in which they came", "[await]") {
  run([] {
    words trace;
    auto first = spin([&] {
      sleep_for(2ms);
      trace.emplace_back("foo");
    });
    auto second = spin([&] {
      first.await();
      trace.emplace_back("bar");
    });
    auto third = spin([&] {
      first.await();
      trace.emplace_back("baz");
    });
    second.await();
    third.await();
    CHECK(trace == words{"foo", "bar", "baz"});
    CHECK(current().children().empty());
  });
}

TEST_CASE("a fiber that is stopped while others await it gives them that value", "[await]") {
  run([] {
    auto f1 = spin([] {
      sleep_for(2ms);
      return 1;
    });
    auto f2 = spin([] {
      sleep_for(1h);
      return 2;
    });
    auto nested = spin([&] { return f1.await() + f2.await(); });
    spin([&] { f2.stop(40); });
    CHECK(nested.await() == 41);
    CHECK(f1.state() == fiber_state::dead);
    CHECK(f2.state() == fiber_state::dead);
  });
}

TEST_CASE("awaiting oneself is a logic error", "[await]") {
  run([] {
    CHECK_THROWS_AS(current().await(), std::logic_error);
    auto f = spin([] { CHECK_THROWS_AS(current().await(), std::logic_error); });
    f.await();
  });
}
