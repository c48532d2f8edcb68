// SPDX-License-Identifier: MIT
// What holds interruptions back, and for how long: grace, shields, unwinding, terminate.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_end;
using testing::note;
using testing::throws_cancelled;
using testing::words;

TEST_CASE("handler_grace: a handler of its own interruption may wait, within the grace",
          "[grace]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(20ms);
        snooze();
        cleaned_up = true;
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(cleaned_up);
  });
}

TEST_CASE("handler_grace: a handler that waits too long is interrupted when the grace is over",
          "[grace]") {
  options config;
  config.handler_grace = 50ms;
  run(config, [] {
    clock::duration waited{};
    int throws = 0;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        const auto start = clock::now();
        try {
          sleep();
        } catch (const cancelled&) {
          ++throws;
        }
        waited = clock::now() - start;
        if (throws_cancelled([] { sleep(); })) ++throws;
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(throws == 2);
    CHECK(waited >= 49ms);
    CHECK(waited < 150ms);
  });
}

TEST_CASE("handler_grace: zero is a valid option", "[grace]") {
  options config;
  config.handler_grace = 0ms;
  run(config, [] {
    bool again = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        again = throws_cancelled([] { sleep_for(1ms); });
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(again);
  });
}

TEST_CASE("handler_grace holds within handlers of other exceptions inside the handler", "[grace]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        try {
          throw std::runtime_error("the clean-up failed");
        } catch (const std::exception&) {
          sleep_for(1ms);
          cleaned_up = true;
        }
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(cleaned_up);
  });
}

TEST_CASE("handler_grace: another interruption is thrown in a handler of the first", "[grace]") {
  run([] {
    bool outer_spoke = false;
    const bool returned = move_on_after(40ms, [&] {
      move_on_after(10ms, [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          outer_spoke = throws_cancelled([] { sleep(); });
          throw;
        }
      });
      sleep();
    });
    CHECK_FALSE(returned);
    CHECK(outer_spoke);
  });
}

TEST_CASE("handler_grace: a time limit works in a handler of a cancellation", "[grace]") {
  run([] {
    bool was_limited = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        was_limited = !move_on_after(10ms, [] { sleep(); });
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(was_limited);
  });
}

TEST_CASE("handler_grace: a time limit works in a handler inside another limit that has passed",
          "[grace]") {
  run([] {
    bool was_limited = false;
    auto worker = spin([&] {
      move_on_after(5ms, [&] {
        try {
          shield([] { sleep_for(20ms); });  // both have come when this is over
          sleep();
        } catch (const cancelled&) {
          was_limited = !move_on_after(10ms, [] { sleep(); });
          throw;
        }
      });
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(was_limited);
  });
}

TEST_CASE("handler_grace: spin() throwing in a cancelled fiber counts as a delivery", "[grace]") {
  run([] {
    bool waited = false;
    auto worker = spin([&] {
      current().cancel();
      try {
        spin([] {});
      } catch (const cancelled&) {
        sleep_for(1ms);
        waited = true;
      }
    });
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("handler_grace: a time limit works in a destructor that runs while its fiber unwinds",
          "[unwinding]") {
  run([] {
    bool was_limited = false;
    auto worker = spin([&] {
      const at_end cleaning{[&] { was_limited = !move_on_after(10ms, [] { sleep(); }); }};
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(was_limited);
  });
}

TEST_CASE("shield() defers an interruption to the first switchpoint behind it", "[shield]") {
  run([] {
    bool finished = false;
    bool was_behind = false;
    auto worker = spin([&] {
      const int value = shield([&] {
        sleep_for(20ms);
        snooze();
        finished = true;
        return 7;
      });
      CHECK(value == 7);
      was_behind = throws_cancelled([] { snooze(); });
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(finished);
    CHECK(was_behind);
  });
}

TEST_CASE("shield(): only the outermost of nested shields lets interruptions in", "[shield]") {
  run([] {
    std::vector<int> steps;
    auto worker = spin([&] {
      shield([&] {
        shield([&] {
          sleep_for(5ms);
          steps.push_back(1);
        });
        sleep_for(5ms);
        steps.push_back(2);
      });
      sleep_for(5ms);
      steps.push_back(3);
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(steps == std::vector{1, 2});
  });
}

TEST_CASE("shield() defers exceptions, failures and timeouts", "[shield]") {
  run([] {
    std::vector<std::string> messages;
    auto worker = spin([&] {
      const bool in_time = move_on_after(5ms, [&] {
        shield([&] {
          spin([] { throw std::runtime_error("a child"); });
          sleep_for(20ms);
          messages.emplace_back("nothing");
        });
        for (int i = 0; i < 2; ++i) {
          try {
            snooze();
          } catch (const std::exception& e) {
            messages.emplace_back(e.what());
          }
        }
        sleep();
      });
      if (!in_time) messages.emplace_back("late");
    });
    snooze();
    snooze();
    worker.raise(std::logic_error("raised"));
    worker.await();
    CHECK(messages == std::vector<std::string>{"nothing", "raised", "a child", "late"});
  });
}

TEST_CASE("shield(): a time limit inside it ends the call that it limits", "[shield]") {
  run([] {
    bool was_limited = false;
    auto worker = spin([&] {
      shield([&] {
        try {
          with_timeout(10ms, [] { sleep(); });
        } catch (const timed_out&) {
          was_limited = true;
        }
      });
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(was_limited);
  });
}

TEST_CASE("shield() works in a destructor on a normal exit", "[shield]") {
  run([] {
    bool waited = false;
    auto worker = spin([&] {
      {
        const at_end closing{[&] {
          shield([] { sleep_for(1ms); });
          waited = true;
        }};
        current().cancel();
      }
    });
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("spin() in a cancelled fiber works under a shield, not outside", "[shield]") {
  run([] {
    bool inside = false;
    bool outside = false;
    auto worker = spin([&] {
      current().cancel();
      shield([&] { spin([&] { inside = true; }).await(); });
      outside = throws_cancelled([] { spin([] {}); });
    });
    worker.await();
    CHECK(inside);
    CHECK(outside);
  });
}

TEST_CASE("fiber::terminate() interrupts a shield when its grace is over", "[terminate]") {
  run([] {
    bool finished = false;
    auto worker = spin([&] {
      shield([&] {
        sleep();
        finished = true;
      });
    });
    snooze();
    const auto start = clock::now();
    CHECK(worker.terminate(30ms) == cancel_result::accepted);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK_FALSE(finished);
    CHECK(clock::now() - start >= 30ms);
    CHECK(clock::now() - start < 200ms);
    CHECK(worker.terminate() == cancel_result::finished);
  });
}

TEST_CASE("fiber::terminate() without a grace interrupts a shield at once", "[terminate]") {
  run([] {
    auto worker = spin([] { shield([] { sleep(); }); });
    snooze();
    worker.cancel();
    snooze();
    CHECK(worker.state() == fiber_state::waiting);
    CHECK(worker.terminate(0s) == cancel_result::already);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
  });
}

TEST_CASE("fiber::terminate(): the shortest of several graces counts", "[terminate]") {
  run([] {
    auto worker = spin([] { shield([] { sleep(); }); });
    snooze();
    const auto start = clock::now();
    worker.terminate(1h);
    worker.terminate(10ms);
    worker.terminate(10s);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(clock::now() - start < 1s);
  });
}

TEST_CASE("fiber::terminate() interrupts nothing while a fiber unwinds", "[terminate]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      const at_end cleaning{[&] {
        sleep_for(40ms);
        cleaned_up = true;
      }};
      sleep();
    });
    snooze();
    worker.terminate(5ms);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(cleaned_up);
  });
}

TEST_CASE("fiber::terminate() reaches children that have not yet been cancelled", "[terminate]") {
  run([] {
    words trace;
    auto top = spin([&] {
      const note top_note(trace, "top");
      spin([&] {
        const note child_note(trace, "child");
        shield([] { sleep(); });
      });
      group members;
      members.spin([&] {
        const note child_note(trace, "in a group");
        auto grandchild = spin([&] {
          const note its_own(trace, "grandchild");
          shield([] { sleep(); });
        });
        shield([&] { grandchild.await(); });
      });
      shield([] { sleep(); });
    });
    snooze();
    snooze();
    snooze();
    const auto start = clock::now();
    CHECK(top.terminate(20ms) == cancel_result::accepted);
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    CHECK(clock::now() - start >= 19ms);
    CHECK(clock::now() - start < 2s);
    std::sort(trace.begin(), trace.end());
    CHECK(trace == words{"child", "grandchild", "in a group", "top"});
  });
}

TEST_CASE("fiber::terminate() reaches the children of a fiber whose body has ended",
          "[terminate]") {
  run([] {
    auto parent = spin([] {
      spin([] { shield([] { sleep(); }); });
      snooze();
    });
    sleep_for(1ms);
    CHECK(parent.state() != fiber_state::dead);
    CHECK(parent.terminate(5ms) == cancel_result::finished);
    parent.await();
    CHECK(parent.terminate(5ms) == cancel_result::finished);
  });
}

TEST_CASE("fiber::terminate() ends children that are spun after the grace is over", "[terminate]") {
  run([] {
    auto parent = spin([] {
      try {
        shield([] { sleep(); });
      } catch (const cancelled&) {
        group late;
        late.spin([] { shield([] { sleep(); }); });
        snooze();
      }
    });
    snooze();
    parent.terminate(5ms);
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
  });
}

TEST_CASE("group::terminate() ends all fibers at once, and a deep tree needs no stack",
          "[terminate]") {
  run([] {
    constexpr int depth = 1'000;
    int ends = 0;
    struct tree {
      static void grow(int depth, int& counter) {
        const at_end done([&counter] { ++counter; });
        if (depth > 1) spin([depth, &counter] { grow(depth - 1, counter); });
        shield([] { sleep(); });
      }
    };
    group members;
    members.spin([&] { tree::grow(depth, ends); });
    members.spin([&] { tree::grow(1, ends); });
    sleep_for(5ms);
    members.terminate(10ms);
    members.await_all();
    CHECK(ends == depth + 1);
    CHECK(members.size() == 0);
    members.terminate();
  });
}

TEST_CASE("fiber::terminate() reaches children on other threads", "[terminate][thread]") {
  run([] {
    thread worker([] { sleep(); });
    auto parent = spin([&] {
      auto child = worker.spin([] { shield([] { sleep(); }); });
      shield([&] { child.await(); });
    });
    sleep_for(2ms);
    parent.terminate(5ms);
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
    worker.cancel();
  });
}

TEST_CASE("fiber::terminate() reaches a call on another thread", "[terminate][thread]") {
  run([] {
    thread worker([] { sleep(); });
    std::atomic<bool> call_started{false};
    const auto caller = spin([&] {
      worker.call([&] {
        call_started = true;
        shield([] { sleep(); });
      });
    });
    while (!call_started) sleep_for(1ms);
    SECTION("after a while") {
      caller.terminate(5ms);
    }
    SECTION("at once") {
      caller.terminate(0s);
    }
    SECTION("when its end was asked for before") {
      caller.cancel();
      sleep_for(1ms);
      caller.terminate(0s);
    }
    CHECK_THROWS_AS(caller.await(), fiber_cancelled);
    worker.cancel();
  });
}

TEST_CASE("fiber::terminate() has no effect after a fiber has ended in time", "[terminate]") {
  run([] {
    for (int i = 0; i < 100; ++i) {
      auto worker = spin([] { sleep(); });
      snooze();
      worker.terminate(1h);
      CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    }
    suspend();  // an armed timer would keep this waiting for an hour
  });
}

TEST_CASE("handler_grace: the maximal duration never ends", "[grace]") {
  options config;
  config.handler_grace = std::chrono::milliseconds::max();
  run(config, [] {
    bool waited = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(10ms);
        waited = true;
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("handler_grace starts when the handler starts", "[grace]") {
  options config;
  config.handler_grace = 50ms;
  run(config, [] {
    bool waited = false;
    struct slow {
      ~slow() { sleep_for(100ms); }
    };
    auto worker = spin([&] {
      try {
        const slow unwinding;
        sleep();
      } catch (const cancelled&) {
        sleep_for(5ms);
        waited = true;
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(waited);
  });
}
