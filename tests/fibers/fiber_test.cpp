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

TEST_CASE("spin() queues a fiber, and await() returns its value", "[fiber]") {
  run([] {
    int observed = 0;
    auto f = spin([&] {
      observed = 42;
      return 42;
    });
    CHECK(f.state() == fiber_state::runnable);
    CHECK(observed == 0);
    CHECK(f.await() == 42);
    CHECK(observed == 42);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("fiber::await() throws the fiber's exception", "[fiber]") {
  run([] {
    auto f = spin([]() -> int { throw std::runtime_error("x"); });
    CHECK_THROWS_AS(f.await(), std::runtime_error);
    CHECK_THROWS_AS(f.await(), std::runtime_error);
  });
}

TEST_CASE("snooze() makes fibers take turns", "[fiber]") {
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

TEST_CASE("fiber::state() is runnable, running, waiting and finally dead", "[state]") {
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

TEST_CASE("run(): the main fiber waits like any other", "[state]") {
  run([] {
    const fiber_ref main = current();
    auto f = spin([main] { return main.state(); });
    CHECK(f.await() == fiber_state::waiting);
    auto g = spin([main] { return main.state(); });
    snooze();
    CHECK(g.await() == fiber_state::runnable);
  });
}

TEST_CASE("spin() never runs a fiber at once", "[order]") {
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

TEST_CASE("spin() queues fibers in call order", "[order]") {
  run([] {
    numbers order, expected_order;
    for (int i = 0; i < 1000; ++i) {
      spin([&order, i] { order.push_back(i); });
      expected_order.push_back(i);
    }
    snooze();
    CHECK(order == expected_order);
  });
}

TEST_CASE("snooze() moves the fiber behind all runnable fibers", "[order]") {
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

TEST_CASE("spin() puts a fiber behind fibers that have snoozed earlier", "[order]") {
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

TEST_CASE("fiber_ref: an empty handle is false, and using it is a logic error", "[handle]") {
  const fiber_ref empty;
  CHECK(!empty);
  CHECK_THROWS_AS(empty.state(), std::logic_error);
  CHECK_THROWS_AS(empty.schedule(), std::logic_error);
  CHECK_THROWS_AS(empty.raise(std::runtime_error("x")), std::logic_error);
  CHECK_THROWS_AS(empty.cancel(), std::logic_error);
  CHECK_THROWS_AS(empty.await(), std::logic_error);
}

TEST_CASE("fiber_ref has a name, a unique number, a home thread and a birth time", "[handle]") {
  run([] {
    const auto start = clock::now();
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
    CHECK(a.spun_at() > start - 1min);
    CHECK(fiber_ref(a) == fiber_ref(a));
    CHECK(!(fiber_ref(a) == fiber_ref(b)));
  });
}

TEST_CASE("fiber::await() returns after the fiber ends, with its value", "[await]") {
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

TEST_CASE("fiber::await() is a switchpoint for a dead fiber too", "[await]") {
  run([] {
    auto dead = spin([] { return 3; });
    dead.await();
    words trace;
    spin([&] { trace.emplace_back("other"); });
    trace.push_back(std::to_string(dead.await()));
    CHECK(trace == words{"other", "3"});
  });
}

TEST_CASE("fiber::await() resumes awaiters in the order of their calls", "[await]") {
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

TEST_CASE("fiber::stop() gives its value to the awaiters", "[await]") {
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

TEST_CASE("fiber::await() on the current fiber is a logic error", "[await]") {
  run([] {
    CHECK_THROWS_AS(current().await(), std::logic_error);
    auto f = spin([] { CHECK_THROWS_AS(current().await(), std::logic_error); });
    f.await();
  });
}
