// SPDX-License-Identifier: MIT
// A child's failure: where it is thrown, and that it is told once.
#include <array>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::fail_when_cancelled;
using testing::first_error;
using testing::second_error;
using testing::words;

TEST_CASE("fiber: a failure interrupts the parent at its next switchpoint, not the siblings",
          "[failure]") {
  run([] {
    words trace;
    auto parent = spin([&] {
      spin([] {
        sleep_for(2ms);
        throw first_error();
      });
      auto sibling = spin([&] {
        suspend();
        trace.emplace_back("sibling");
        return 7;
      });
      const auto start = clock::now();
      try {
        sleep_for(1h);
      } catch (const first_error&) {
        trace.emplace_back("told");
      }
      CHECK(clock::now() - start < 1h);
      sibling.schedule();
      return sibling.await();
    });
    CHECK(parent.await() == 7);
    CHECK(trace == words{"told", "sibling"});
  });
}

TEST_CASE("fiber: a failure reaches the parent after the failed fiber's own children have ended",
          "[failure]") {
  run([] {
    words trace;
    auto parent = spin([&] {
      spin([&] {
        spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(2ms);
            trace.emplace_back("grandchild");
            throw;
          }
        });
        snooze();
        throw first_error();
      });
      CHECK_THROWS_AS(sleep(), first_error);
      trace.emplace_back("told");
    });
    parent.await();
    CHECK(trace == words{"grandchild", "told"});
  });
}

TEST_CASE("fiber: an uncaught failure propagates from parent to parent", "[failure]") {
  run([] {
    std::vector<int> frames;
    spin([&] {
      spin([&] {
        spin([] { throw first_error(); });
        try {
          sleep();
        } catch (const first_error&) {
          frames.push_back(2);
          throw;
        }
      });
      try {
        sleep();
      } catch (const first_error&) {
        frames.push_back(3);
        throw;
      }
    });
    bool notified = false;
    for (int i = 0; i < 6 && !notified; ++i) {
      try {
        snooze();
      } catch (const first_error&) {
        notified = true;
      }
    }
    CHECK(notified);
    CHECK(frames == std::vector<int>{2, 3});
  });
}

TEST_CASE("fiber::await() is interrupted by the failure of another child", "[failure]") {
  run([] {
    auto slow = spin([] {
      sleep_for(3ms);
      return 1;
    });
    spin([] { throw first_error(); });
    CHECK_THROWS_AS(slow.await(), first_error);
    CHECK(slow.await() == 1);
  });
}

TEST_CASE("fiber: every child's failure reaches the parent, oldest first", "[failure]") {
  run([] {
    spin([] { throw first_error(); });
    spin([] { throw second_error(); });
    CHECK_THROWS_AS(sleep(), first_error);
    CHECK_THROWS_AS(snooze(), second_error);
    snooze();
  });
}

TEST_CASE("fiber::await() claims a failure, which then does not reach the parent too",
          "[failure]") {
  run([] {
    auto parent = spin([] {
      auto fails = spin([] {
        snooze();
        snooze();
        throw first_error();
      });
      auto awaiter = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
      sleep_for(2ms);
      awaiter.await();
      snooze();
    });
    parent.await();
  });
}

TEST_CASE("fiber::await() throws the failure to every awaiter", "[failure]") {
  run([] {
    int notifications = 0;
    auto fails = spin([] {
      sleep_for(1ms);
      throw first_error();
    });
    std::vector<fiber<void>> awaiters;
    for (int i = 0; i < 5; ++i) {
      awaiters.push_back(spin([&] {
        try {
          fails.await();
        } catch (const first_error&) {
          ++notifications;
        }
      }));
    }
    for (auto& awaiter : awaiters) awaiter.await();
    CHECK(notifications == 5);
    CHECK_THROWS_AS(fails.await(), first_error);
  });
}

TEST_CASE("fiber::await() in the parent claims a failure, which is thrown only once", "[failure]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    CHECK_THROWS_AS(fails.await(), first_error);
    snooze();
    sleep_for(1ms);
  });
}

TEST_CASE("fiber: a failure reaches the parent if its only awaiter was interrupted first",
          "[failure]") {
  run([] {
    bool notified = false;
    auto parent = spin([&] {
      std::optional<fiber<void>> awaiter;
      auto fails = spin([&] {
        snooze();
        awaiter->raise(second_error());  // the awaiter is interrupted, but has not run yet
        throw first_error();
      });
      awaiter.emplace(spin([&] { CHECK_THROWS_AS(fails.await(), second_error); }));
      try {
        sleep_for(5ms);
        sleep_for(5ms);
      } catch (const first_error&) {
        notified = true;
      }
    });
    parent.await();
    CHECK(notified);
  });
}

TEST_CASE("fiber: a failure reaches the parent if its only awaiter timed out first", "[failure]") {
  run([] {
    int notifications = 0;
    event timed_out;
    auto fails = spin([&] {
      timed_out.wait();
      throw first_error();
    });
    auto awaiter = spin([&] {
      move_on_after(1ms, [&] { fails.await(); });
      timed_out.set();
    });
    try {
      sleep_for(5s);
    } catch (const first_error&) {
      ++notifications;
    }
    CHECK(notifications == 1);
    awaiter.await();
  });
}

TEST_CASE("fiber: a child that fails while its parent ends makes the parent fail", "[failure]") {
  run([] {
    auto returns = spin([] {
      spin(fail_when_cancelled);
      snooze();
      return 1;
    });
    CHECK_THROWS_AS(returns.await(), first_error);
    auto is_cancelled = spin([] {
      spin(fail_when_cancelled);
      sleep();
    });
    snooze();
    snooze();
    is_cancelled.cancel();
    CHECK_THROWS_AS(is_cancelled.await(), first_error);
  });
}

TEST_CASE("options::on_unhandled receives children's failures that have no living parent",
          "[failure]") {
  int untold = 0;
  options config;
  config.on_unhandled = [&](const std::exception_ptr& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error), first_error);
    ++untold;
  };
  run(config, [] {
    auto fails_itself = spin([] {
      for (int i = 0; i < 3; ++i) spin(fail_when_cancelled);
      snooze();
      throw second_error();
    });
    CHECK_THROWS_AS(fails_itself.await(), second_error);
    auto returns = spin([] {
      for (int i = 0; i < 3; ++i) spin(fail_when_cancelled);
      snooze();
    });
    CHECK_THROWS_AS(returns.await(), first_error);
  });
  CHECK(untold == 3 + 2);
}

TEST_CASE("fiber::await() is not misled by an assignment to its handle", "[await]") {
  run([] {
    auto worker = spin([]() -> std::string {
      sleep_for(5ms);
      throw first_error();
    });
    auto watcher = spin([&] { CHECK_THROWS_AS(worker.await(), first_error); });
    auto victim = spin([] {
      sleep_for(5ms);
      return std::string("mine");
    });
    auto taker = spin([&] { CHECK(std::move(victim).await() == "mine"); });
    snooze();
    snooze();
    worker = spin([] { return std::string("another's"); });
    victim = spin([] { return std::string("another's"); });
    watcher.await();
    taker.await();
  });
}

// A failure that has ended its parent's wait is the parent's, also when another fiber awaits the
// failed one before the parent has run: then both are told.

TEST_CASE("sleep() throws the child failure that ended it, even if claimed afterwards",
          "[failure][claimed]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    CHECK_THROWS_AS(sleep_for(10ms), first_error);
    claims.await();
  });
}

TEST_CASE("io::read() throws the child failure that ended it, even if claimed afterwards",
          "[failure][claimed]") {
  run([] {
    auto ends = testing::make_pipe();
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    std::array<std::byte, 1> buffer;
    CHECK_THROWS_AS(io::read(ends.first(), buffer), first_error);
    claims.await();
  });
}

TEST_CASE("fiber::await() throws the child failure that ended it, even if claimed afterwards",
          "[failure][claimed]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    auto slow = spin([] {
      sleep_for(2ms);
      return 6;
    });
    CHECK_THROWS_AS(slow.await(), first_error);
    CHECK(slow.await() == 6);
    claims.await();
  });
}
