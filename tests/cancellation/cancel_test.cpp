// SPDX-License-Identifier: MIT
// Cancelling and stopping: asked once, told again and again, and what awaiting tells of it.
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_exit;
using testing::first_error;
using testing::throws_cancelled;
using testing::words;

TEST_CASE("fiber::cancel() replaces a token that suspend() has not yet returned", "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      at_exit last([&] { trace.emplace_back("left"); });
      (void)suspend<int>();
      trace.emplace_back("went on");
      snooze();
      trace.emplace_back("and on");
    });
    snooze();
    f.schedule(1);
    CHECK(f.cancel() == cancel_result::accepted);
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace.back() == "left");
    CHECK(trace.size() <= 2);  // the value may have been seen, but nothing after it
  });
}

TEST_CASE("fiber::cancel() tells whether it was accepted, repeated or too late", "[cancel]") {
  run([] {
    auto f = spin([] { sleep(); });
    snooze();
    CHECK(f.cancel("first") == cancel_result::accepted);
    CHECK(f.cancel("second") == cancel_result::already);
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(f.cancel() == cancel_result::finished);
  });
}

TEST_CASE("fiber::await() on a cancelled fiber throws its name and the first reason", "[cancel]") {
  run([] {
    auto f = spin({.name = "alto"}, [] { sleep(); });
    snooze();
    f.cancel("the concert is over");
    f.cancel("too late");
    try {
      f.await();
      FAIL("it was not cancelled");
    } catch (const fiber_cancelled& error) {
      CHECK(std::string(error.reason()) == "the concert is over");
      CHECK(error.fiber() == "alto");
      CHECK(std::string(error.what()).find("alto") != std::string::npos);
      CHECK(std::string(error.what()).find("the concert is over") != std::string::npos);
    }
  });
}

TEST_CASE("cancelled carries its reason, and a handler of std::exception does not catch it",
          "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const std::exception&) {
        trace.emplace_back("exception");
      } catch (const cancelled& error) {
        trace.emplace_back(error.reason());
        throw;
      }
    });
    snooze();
    f.cancel("enough");
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace == words{"enough"});
    CHECK(!std::is_base_of_v<std::exception, cancelled>);
    CHECK(std::is_base_of_v<std::runtime_error, fiber_cancelled>);
  });
}

TEST_CASE("fiber::cancel(): a cancelled fiber is no failure to its parent", "[cancel]") {
  run([] {
    auto parent = spin([] {
      auto child = spin([] { sleep(); });
      snooze();
      child.cancel();
      sleep_for(2ms);
      return child.state();
    });
    CHECK(parent.await() == fiber_state::dead);
  });
}

TEST_CASE("fiber::cancel() does not replace the value of a fiber that returns", "[cancel]") {
  run([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      return 8;
    });
    snooze();
    f.cancel();
    CHECK(f.await() == 8);
  });
}

TEST_CASE("fiber::cancel() works on the current fiber", "[cancel]") {
  run([] {
    bool went_on = false;
    auto f = spin([&] {
      CHECK(current().cancel("by itself") == cancel_result::accepted);
      snooze();
      went_on = true;
    });
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(!went_on);
  });
}

TEST_CASE("fiber::cancel(): another exception that ends the fiber is its failure", "[cancel]") {
  run([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
        throw first_error();
      }
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), first_error);
  });
}

TEST_CASE("fiber::raise() and cancel() are both delivered", "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      for (int i = 0; i < 2; ++i) {
        try {
          sleep();
        } catch (const first_error&) {
          trace.emplace_back("raised");
        } catch (const cancelled&) {
          trace.emplace_back("cancelled");
        }
      }
    });
    snooze();
    CHECK(f.cancel() == cancel_result::accepted);
    CHECK(f.raise(first_error()));
    f.await();
    CHECK(trace.size() == 2);
    CHECK(trace[0] != trace[1]);
  });
}

TEST_CASE("fiber::stop() ends the fiber with the given value", "[stop]") {
  run([] {
    words trace;
    auto f = spin([&] {
      trace.emplace_back("begin");
      snooze();
      snooze();
      trace.emplace_back("end");
      return 3;
    });
    auto stopper = spin([&] { CHECK(f.stop(42) == cancel_result::accepted); });
    CHECK(f.await() == 42);
    stopper.await();
    CHECK(trace == words{"begin"});
    CHECK(f.stop(43) == cancel_result::finished);
    CHECK(f.await() == 42);
  });
}

TEST_CASE("fiber::stop(): the value counts only if the stop ends the body", "[stop]") {
  run([] {
    auto returns = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      return std::string("of its own");
    });
    auto throws = spin([]() -> std::string {
      try {
        sleep();
      } catch (const cancelled&) {
        throw first_error();
      }
    });
    snooze();
    returns.stop("of another");
    throws.stop("of another");
    CHECK(returns.await() == "of its own");
    CHECK_THROWS_AS(throws.await(), first_error);
  });
}

TEST_CASE("fiber::stop(): the first stop counts; stopping a cancelled fiber sets no value",
          "[stop]") {
  run([] {
    auto twice = spin([]() -> int { sleep(); });
    auto unstopped = spin([]() -> int { sleep(); });
    snooze();
    CHECK(twice.stop(1) == cancel_result::accepted);
    CHECK(twice.stop(2) == cancel_result::already);
    unstopped.cancel();
    CHECK(unstopped.stop(2) == cancel_result::already);
    CHECK(twice.await() == 1);
    CHECK_THROWS_AS(unstopped.await(), fiber_cancelled);
  });
}

TEST_CASE("fiber::stop() accepts move-only, large and void values", "[stop]") {
  run([] {
    auto pointer = spin([]() -> std::unique_ptr<int> { sleep(); });
    auto array = spin([]() -> std::array<int, 100> { sleep(); });
    auto void_fiber = spin([] { sleep(); });
    snooze();
    pointer.stop(std::make_unique<int>(6));
    std::array<int, 100> sevens;
    sevens.fill(7);
    array.stop(sevens);
    CHECK(void_fiber.stop() == cancel_result::accepted);
    CHECK(**&pointer.await() == 6);
    CHECK(array.await()[99] == 7);
    void_fiber.await();
  });
}

TEST_CASE("spin() is refused in a fiber that has swallowed its cancellation", "[cancel]") {
  run([] {
    bool ran = false;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      spin([&] { ran = true; });
    });
    snooze();
    f.cancel("enough");
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(!ran);
  });
}

TEST_CASE("fiber::cancel() on a runnable fiber runs it once, with the exception", "[cancel]") {
  run([] {
    int turns = 0;
    auto f = spin([&] {
      for (;;) {
        snooze();
        ++turns;
      }
    });
    for (int i = 0; i < 4; ++i) snooze();
    const int turns_before = turns;
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(turns == turns_before);
  });
}

TEST_CASE("fiber::cancel(): every further switchpoint throws again", "[cancel]") {
  run([] {
    int deliveries = 0;
    auto stubborn = spin([&] {
      for (int i = 0; i < 5; ++i) deliveries += throws_cancelled([] { sleep_for(1h); }) ? 1 : 0;
      deliveries += throws_cancelled([] { snooze(); }) ? 1 : 0;
      deliveries += throws_cancelled([] { suspend<int>(); }) ? 1 : 0;
      deliveries += throws_cancelled([] { checkpoint(); }) ? 1 : 0;
      deliveries += throws_cancelled([] { spin([] {}).await(); }) ? 1 : 0;
    });
    snooze();
    stubborn.cancel();
    stubborn.await();
    CHECK(deliveries == 9);
  });
}

TEST_CASE("fiber::cancel(): a loop that swallows cancelled does not starve other fibers",
          "[cancel]") {
  options config;
  config.on_notice = [](std::string_view) {};
  run(config, [] {
    bool finished = false;
    auto stubborn = spin([&] {
      while (!finished) {
        try {
          sleep();
        } catch (const cancelled&) {
        }
      }
    });
    snooze();
    stubborn.cancel();
    int turns = 0;
    while (turns < 1'000) {
      snooze();
      ++turns;
    }
    finished = true;
    stubborn.await();
    CHECK(turns == 1'000);
  });
}

TEST_CASE("fiber::cancel(): a loop that ignores read errors does not starve other fibers",
          "[cancel]") {
  run([] {
    testing::descriptor_pair ends = testing::make_socket_pair();
    bool finished = false;
    auto stubborn = spin([&] {
      std::array<std::byte, 1> byte{};
      while (!finished) {
        std::error_code error;
        io::recv(ends.first(), byte, 0, error);
      }
    });
    snooze();
    stubborn.cancel();
    for (int i = 0; i < 1'000; ++i) snooze();
    finished = true;
    stubborn.await();
  });
}

TEST_CASE("options::on_notice reports once a fiber that swallows cancelled a hundred times",
          "[cancel]") {
  std::vector<std::string> notices;
  options config;
  config.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(config, [&] {
    auto stubborn = spin({.name = "stubborn"}, [] {
      for (int i = 0; i < 500; ++i) throws_cancelled([] { sleep(); });
    });
    snooze();
    stubborn.cancel();
    stubborn.await();
  });
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("stubborn") != std::string::npos);
  CHECK(notices[0].find("cancel_test.cpp") != std::string::npos);
}

TEST_CASE("cancelled tells the call site of the request", "[cancel]") {
  run([] {
    call_site site;
    auto sleeper = spin([&] {
      try {
        sleep();
      } catch (const cancelled& error) {
        site = error.asked_at();
        throw;
      }
    });
    snooze();
    const unsigned line = __LINE__ + 1;
    sleeper.cancel();
    CHECK_THROWS_AS(sleeper.await(), fiber_cancelled);
    CHECK(site.line == line);
    CHECK(std::string(site.file).find("cancel_test.cpp") != std::string::npos);
  });
}

TEST_CASE("spin() into any group is refused in a cancelled fiber", "[cancel]") {
  run([] {
    group open;
    bool ran = false;
    bool refused = false;
    spin([&] {
      current().cancel();
      try {
        open.spin([&] { ran = true; });
      } catch (const cancelled&) {
        refused = true;
      }
    }).await();
    open.await_all();
    CHECK(refused);
    CHECK_FALSE(ran);
  });
}
