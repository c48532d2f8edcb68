// SPDX-License-Identifier: MIT
// The beginning and end of a runtime: what run() returns and throws, and what outlives it.
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::fail_when_cancelled;
using testing::first_error;
using testing::note;
using testing::second_error;
using testing::words;

TEST_CASE("run() returns a reference if its body does", "[run]") {
  int local = 1;
  int& reference = run([&]() -> int& { return local; });
  CHECK(&reference == &local);
}

TEST_CASE("run() returns what its function returned", "[run]") {
  CHECK(run([] { return 3; }) == 3);
  CHECK(*run([] { return std::make_unique<int>(4); }) == 4);
  run([] {});
}

TEST_CASE("run() throws what its function threw, after all fibers have ended", "[run]") {
  words trace;
  CHECK_THROWS_AS(run([&] {
                    spin([&] {
                      const note last(trace, "ended");
                      sleep();
                    });
                    snooze();
                    throw first_error();
                  }),
                  first_error);
  CHECK(trace == words{"ended"});
}

TEST_CASE("run() ends sleepers at once; suspend() before its end lets them finish", "[run]") {
  words trace;
  const auto sleeper = [&](const char* name) {
    spin([&trace, name] {
      const note last(trace, std::string(name) + " destroyed");
      sleep_for(3ms);
      trace.push_back(std::string(name) + " woke");
    });
  };
  run([&] {
    sleeper("a");
    snooze();
  });
  CHECK(trace == words{"a destroyed"});
  trace.clear();
  run([&] {
    sleeper("b");
    suspend();
  });
  CHECK(trace == words{"b woke", "b destroyed"});
}

TEST_CASE("run() throws a failure that its function did not receive", "[run]") {
  CHECK_THROWS_AS(run([] {
                    spin(fail_when_cancelled);
                    snooze();
                  }),
                  first_error);
  CHECK_THROWS_AS(run([] {
                    spin(fail_when_cancelled);
                    snooze();
                    return 1;
                  }),
                  first_error);
}

TEST_CASE("options::on_unhandled receives failures that nobody can receive any more", "[run]") {
  words messages;
  options config;
  config.on_unhandled = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      messages.emplace_back(e.what());
    }
  };
  CHECK_THROWS_AS(run(config,
                      [] {
                        spin(fail_when_cancelled);
                        snooze();
                        throw second_error();
                      }),
                  second_error);
  CHECK(messages == words{"first"});
  messages.clear();
  CHECK_THROWS_AS(run(config,
                      [] {
                        spin(fail_when_cancelled);
                        spin([] {
                          try {
                            sleep();
                          } catch (const cancelled&) {
                            throw second_error();
                          }
                        });
                        snooze();
                      }),
                  first_error);
  CHECK(messages == words{"second"});
}

TEST_CASE("run(): the main fiber can be cancelled, too", "[run]") {
  CHECK_THROWS_AS(run([] {
                    spin([main = current()] { main.cancel("no more"); });
                    sleep();
                  }),
                  cancelled);
}

TEST_CASE("run() within a run is a logic error, and the outer one goes on", "[run]") {
  run([] {
    CHECK_THROWS_AS(run([] {}), std::logic_error);
    auto f = spin([] {
      CHECK_THROWS_AS(run([] {}), std::logic_error);
      return 2;
    });
    CHECK(f.await() == 2);
  });
}

TEST_CASE("run() refuses invalid options", "[run]") {
  options config;
  config.stack_size = 1;
  CHECK_THROWS_AS(run(config, [] {}), std::invalid_argument);
  config = {};
  config.switches_between_polls = 0;
  CHECK_THROWS_AS(run(config, [] {}), std::invalid_argument);
  config = {};
  config.backend = "no such backend";
  CHECK_THROWS(run(config, [] {}));
  CHECK(run([] { return 1; }) == 1);
}

TEST_CASE("fiber: handles outlive the runtime and return the stored result", "[run]") {
  fiber<std::string> value;
  fiber<int> failing, never;
  fiber<void> sleeper;
  fiber_ref main;
  run([&] {
    main = current();
    value = spin({.name = "alto"}, [] { return std::string("a value"); });
    failing = spin([]() -> int { throw first_error(); });
    sleeper = spin([] { sleep(); });
    value.await();
    CHECK_THROWS_AS(failing.await(), first_error);
    never = spin([] { return 1; });
  });
  CHECK(value.await() == "a value");
  CHECK(value.name() == "alto");
  CHECK_THROWS_AS(failing.await(), first_error);
  CHECK_THROWS_AS(sleeper.await(), fiber_cancelled);
  CHECK_THROWS_AS(never.await(), fiber_cancelled);
  for (const fiber_ref& handle : {fiber_ref(value), fiber_ref(failing), fiber_ref(sleeper), main}) {
    CHECK(handle.state() == fiber_state::dead);
    CHECK(!handle.schedule(1));
    CHECK(!handle.raise(first_error()));
    CHECK(handle.cancel() == cancel_result::finished);
    CHECK(handle.children().empty());
  }
  CHECK(value.parent() == main);
  CHECK(!main.parent());
  CHECK(value.stop("another") == cancel_result::finished);
  run([&] {  // another runtime of the same thread
    CHECK(value.await() == "a value");
    CHECK(std::move(value).await() == "a value");
    CHECK_THROWS_AS(sleeper.await(), fiber_cancelled);
    sleeper = {};
  });
  CHECK_THROWS_AS(value.await(), std::logic_error);
}

TEST_CASE("run() can be called several times on a thread", "[run]") {
  for (int i = 0; i < 20; ++i) {
    const int value = run([i] {
      auto f = spin([i] { return i; });
      sleep_for(0ms);
      return f.await();
    });
    CHECK(value == i);
  }
}
