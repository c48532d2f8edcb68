// SPDX-License-Identifier: MIT
// Simulated worlds: what a seed decides, and that nothing else does.
#include <algorithm>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::order;
using motet::testing::outcome;
using motet::testing::plan;
using motet::testing::time_mode;
using motet::testing::world;
using ::testing::require;

/// Returns: the orders in which three fibers ended, over many seeds.
std::set<std::string> orders(order how, const std::function<void(char)>& before) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::string ended;
    plan one;
    one.seed = seed;
    one.how = how;
    const outcome result = motet::testing::run(one, [&](world&) {
      group tasks;
      for (const char name : {'a', 'b', 'c'}) {
        tasks.spin([&, name] {
          before(name);
          ended += name;
        });
      }
      tasks.await_all();
    });
    REQUIRE(result.failure.empty());
    found.insert(ended);
  }
  return found;
}

}  // namespace

TEST_CASE("testing::run() passes with the function's return, in virtual time") {
  const outcome result = motet::testing::run({}, [](world&) { sleep_for(30min); });
  CHECK(result.failure.empty());
  CHECK(result.passed);
  CHECK(result.span >= 30min);
  CHECK(result.span < 31min);
}

TEST_CASE("testing::run() reports what the function throws") {
  const outcome result =
      motet::testing::run({}, [](world&) { throw std::runtime_error("no answer"); });
  CHECK_FALSE(result.passed);
  CHECK(result.failure == "the function threw: no answer");
}

TEST_CASE("testing::order::open keeps the queue's order, but not that of one instant") {
  CHECK(orders(order::open, [](char) {}) == std::set<std::string>{"abc"});
  CHECK(orders(order::open, [](char) { snooze(); }) == std::set<std::string>{"abc"});
  CHECK(orders(order::open, [](char) { sleep_for(1s); }).size() == 6);
  CHECK(orders(order::open, [](char name) { sleep_for(1ms * name); }) ==
        std::set<std::string>{"abc"});
}

TEST_CASE("testing::order::any runs any of the runnable fibers") {
  CHECK(orders(order::any, [](char) {}).size() == 6);
  CHECK(orders(order::any, [](char) { sleep_for(1s); }).size() == 6);
  CHECK(orders(order::any, [](char name) { sleep_for(1ms * name); }) ==
        std::set<std::string>{"abc"});
}

TEST_CASE("testing::run() decides which branch select() takes") {
  std::set<int> taken;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    plan one;
    one.seed = seed;
    const outcome result = motet::testing::run(one, [&](world&) {
      channel<int> left(1);
      channel<int> right(1);
      left.push(1);
      right.push(2);
      select(on_pop(left, [&](auto item) { taken.insert(*item); }),
             on_pop(right, [&](auto item) { taken.insert(*item); }));
    });
    REQUIRE(result.failure.empty());
  }
  CHECK(taken.size() == 2);
}

namespace {

/// A program that depends on all that is decided.
std::string busy_program(world& in) {
  std::string record;
  channel<int> items(2);
  group tasks;
  for (int i = 0; i < 5; ++i) {
    tasks.spin([&, i] {
      for (int turn = 0; turn < 4; ++turn) {
        sleep_for(1ms * in.random(3));
        items.push(i);
      }
    });
  }
  tasks.spin([&] {
    for (int i = 0; i < 20; ++i) record += std::to_string(*items.pop());
  });
  tasks.await_all();
  return record;
}

}  // namespace

TEST_CASE("testing::run() is the same for the same seed, and for the log") {
  std::set<std::string> records;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const order how : {order::open, order::any}) {
      plan one;
      one.seed = seed;
      one.how = how;
      std::vector<std::string> found;
      const auto record = [&](world& in) { found.push_back(busy_program(in)); };
      const outcome first = motet::testing::run(one, record);
      const outcome second = motet::testing::run(one, record);
      CHECK(first.log == second.log);
      CHECK(first.span == second.span);
      CHECK(first.steps == second.steps);
      one.log = first.log;
      one.seed = seed + 1'000;
      const outcome replay = motet::testing::run(one, record);
      CHECK(replay.failure.empty());
      CHECK(replay.log == first.log);
      CHECK(found[0] == found[1]);
      CHECK(found[0] == found[2]);
      records.insert(found[0]);
    }
  }
  CHECK(records.size() > 30);
}

TEST_CASE("testing::run() reports a program that is not the one of the log") {
  plan one;
  const outcome first = motet::testing::run(one, [](world& in) {
    in.random(7);
    in.random(9);
  });
  one.log = first.log;
  const outcome other = motet::testing::run(one, [](world& in) {
    in.random(7);
    in.random(10);
    snooze();
    snooze();
  });
  CHECK(other.failure.find("decision 1 was") != std::string::npos);
  CHECK(other.failure.find("of 9, kind p, and is one of 10, kind p") != std::string::npos);
  CHECK(other.failure.find(", in the fiber of ") != std::string::npos);
}

TEST_CASE("testing::run() refuses what is no log") {
  plan one;
  for (const char* const log : {"x", "motet decisions 1\nq 3 1\n", "motet decisions 1\np 3 3\n",
                                "motet decisions 1\np 3\n", "motet decisions 2\n"}) {
    one.log = log;
    CHECK_THROWS_AS(motet::testing::run(one, [](world&) {}), std::invalid_argument);
  }
}

TEST_CASE("testing::run() fails at its horizon, and after its steps") {
  plan one;
  one.horizon = 1h;
  CHECK(motet::testing::run(one, [](world&) { sleep_for(2h); }).failure ==
        "the horizon was reached");
  one.steps = 1'000;
  CHECK(motet::testing::run(one, [](world&) {
          for (;;) snooze();
        }).failure == "the limit of 1000 steps was reached");
}

TEST_CASE("testing::run() fails when every fiber waits for another") {
  const outcome result = motet::testing::run({}, [](world&) {
    channel<int> nobody(1);
    nobody.pop();
  });
  CHECK(result.failure == "every fiber waits, and no timer is set");
}

TEST_CASE("testing::world::until_idle() waits for every other fiber") {
  const outcome result = motet::testing::run({}, [](world& in) {
    int turns = 0;
    group tasks;
    tasks.spin([&] {
      for (; turns < 100; ++turns) snooze();
      sleep_for(1h);
    });
    in.until_idle();
    CHECK(turns == 100);
    tasks.cancel();
  });
  CHECK(result.failure.empty());
  CHECK(result.span < 1s);
}

TEST_CASE("testing::world::advance() fires the timers of its time, each at its own") {
  for (const time_mode mode : {time_mode::jumps, time_mode::stands}) {
    plan one;
    one.time = mode;
    const outcome result = motet::testing::run(one, [](world& in) {
      std::vector<clock::duration> fired;
      const auto start = clock::now();
      group tasks;
      for (const int seconds : {5, 1, 3}) {
        tasks.spin([&, seconds] {
          sleep_for(std::chrono::seconds(seconds));
          fired.push_back(clock::now() - start);
        });
      }
      in.advance(500ms);
      CHECK(fired.empty());
      in.advance(3s);
      REQUIRE(fired.size() == 2);
      CHECK(fired[0] < 1001ms);
      CHECK(fired[1] >= 3s);
      CHECK(fired[1] < 3001ms);
      in.advance(10s);
      CHECK(fired.size() == 3);
      CHECK(clock::now() - start >= 13s);
      CHECK_THROWS_AS(in.advance(-1s), std::invalid_argument);
      tasks.await_all();
    });
    CHECK(result.failure.empty());
  }
}

TEST_CASE("testing::world: several fibers may wait for the time, and for the others") {
  const auto result = motet::testing::run({}, [](world& in) {
    const auto start = clock::now();
    group tasks;
    for (const int seconds : {3, 1, 2}) {
      tasks.spin([&, seconds] {
        in.advance(std::chrono::seconds(seconds));
        CHECK(clock::now() - start >= std::chrono::seconds(seconds));
        CHECK(clock::now() - start < std::chrono::seconds(seconds) + 1ms);
      });
      tasks.spin([&] { in.until_idle(); });
    }
    tasks.await_all();
  });
  CHECK(result.failure.empty());
}

TEST_CASE("testing::time_mode::stands fails when every fiber waits for the time") {
  plan one;
  one.time = time_mode::stands;
  CHECK(motet::testing::run(one, [](world&) { sleep_for(1s); }).failure ==
        "every fiber waits, and time stands");
}

TEST_CASE("testing::world::always() is asked at each switch") {
  const outcome result = motet::testing::run({}, [](world& in) {
    int value = 0;
    in.always([&] { return value != 7; });
    for (; value < 20; ++value) snooze();
  });
  CHECK(result.failure.starts_with("the invariant of "));
  CHECK(result.failure.find("world_test.cpp:") != std::string::npos);
  CHECK(result.failure.ends_with(" does not hold"));
  CHECK(result.steps < 20);
  CHECK(motet::testing::run({}, [](world& in) {
          in.always([]() -> bool { throw std::runtime_error("odd"); });
          snooze();
          snooze();
        }).failure.ends_with(" threw: odd"));
  CHECK(motet::testing::run({}, [](world& in) {
          in.always([]() -> bool { throw 7; });
          snooze();
          snooze();
        }).failure.ends_with(" threw: an exception"));
}

TEST_CASE("testing::world::eventually() waits for a condition, for a time") {
  CHECK(motet::testing::run({}, [](world& in) {
          bool done = false;
          group tasks;
          tasks.spin([&] {
            sleep_for(40s);
            done = true;
          });
          in.eventually([&] { return done; }, 1min);
          tasks.await_all();
        }).failure.empty());
  CHECK(motet::testing::run({}, [](world& in) {
          in.eventually([] { return false; }, 1min);
        }).failure.ends_with(" did not hold in time"));
}

TEST_CASE("testing::world: cancellation ends loops of its calls") {
  const auto result = motet::testing::run({}, [](world& in) {
    const std::function<void()> loops[] = {[&] { in.until_idle(); }, [&] { in.advance(1ms); },
                                           [&] { in.eventually([] { return true; }, 1s); }};
    for (const auto& call : loops) {
      fiber<void> loop = spin([&] {
        for (;;) call();
      });
      sleep_for(10ms);
      loop.cancel();
      CHECK_THROWS_AS(loop.await(), fiber_cancelled);
    }
  });
  CHECK(result.failure.empty());
}

TEST_CASE("testing::order::any of more fibers than a queue links") {
  plan one;
  one.how = order::any;
  const auto result = motet::testing::run(one, [](world&) {
    int ended = 0;
    group tasks;
    for (int i = 0; i < 4'500; ++i) {
      tasks.spin([&] {
        snooze();
        ++ended;
      });
    }
    tasks.await_all();
    CHECK(ended == 4'500);
  });
  CHECK(result.failure.empty());
}

TEST_CASE("testing::run() waits for what is offloaded, in real time") {
  const auto result = motet::testing::run({}, [](world& in) {
    int answer = 0;
    group tasks;
    tasks.spin([&] {
      for (int i = 0; i < 100; ++i) answer += offload([] { return 1; });
      std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + 20ms;
      offload([&] { std::this_thread::sleep_until(end); });
    });
    in.advance(100ms);
    tasks.await_all();
    in.until_idle();
    CHECK(answer == 100);
  });
  CHECK(result.failure.empty());
  CHECK(result.span >= 100ms);
}

TEST_CASE("testing::run() ends a program that fails and has still to clean up") {
  plan one;
  one.time = time_mode::stands;
  const auto result = motet::testing::run(one, [](world&) {
    struct cleaner {
      ~cleaner() {
        shield([] { sleep_for(1h); });
      }
    };
    const cleaner slow;
    sleep_for(1s);
  });
  CHECK(result.failure == "every fiber waits, and time stands");
}

TEST_CASE("testing::run() limits the steps of a fiber that never waits") {
  plan one;
  one.steps = 1'000;
  CHECK(motet::testing::run(one, [](world&) {
          channel<int> items(1);
          for (;;) {
            items.push(1);
            items.pop();
          }
        }).failure == "the limit of 1000 steps was reached");
}

TEST_CASE("testing::world::eventually() without a limit, and after an implicit runtime") {
  sleep_for(1ms);
  CHECK(motet::testing::run({}, [](world& in) {
          bool done = false;
          group tasks;
          tasks.spin([&] {
            sleep_for(10min);
            done = true;
          });
          in.eventually([&] { return done; }, clock::duration::max());
          tasks.await_all();
        }).failure.empty());
}

TEST_CASE("testing::world: an offloaded call begins when a seed says so") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::string first;
    const auto result = motet::testing::run({.seed = seed}, [&](world&) {
      group tasks;
      for (const char name : {'a', 'b'}) {
        tasks.spin([&first, name] {
          const std::thread::id own = std::this_thread::get_id();
          const char same = offload([&, name] {
            require(std::this_thread::get_id() != own, "on another thread");
            return name;
          });
          first += same;
        });
      }
      tasks.await_all();
      bool thrown = false;
      try {
        offload_owned([] { throw std::runtime_error("no"); });
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      require(thrown, "an exception comes back");
      const bool in_time = move_on_after(1ns, [&] { offload([&] { first += '!'; }); });
      require(in_time == (first.back() == '!'), "it has begun, or it never does");
    });
    INFO(result.failure);
    REQUIRE(result.passed);
    orders.insert(first.substr(0, 2));
  }
  CHECK(orders == std::set<std::string>{"ab", "ba"});
}

TEST_CASE("testing::world: order::pct lets every fiber run that another one waits for") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto result =
        motet::testing::run({.seed = seed, .how = order::pct, .depth = 4}, [](world&) {
          bool ready = false;
          group tasks;
          tasks.spin([&] {
            while (!ready) snooze();
          });
          tasks.spin([&] {
            for (int i = 0; i < 10; ++i) snooze();
            ready = true;
          });
          tasks.await_all();
        });
    INFO(result.failure);
    REQUIRE(result.passed);
  }
  CHECK_THROWS_AS(motet::testing::run({.depth = 0}, [](world&) {}), std::invalid_argument);
}
