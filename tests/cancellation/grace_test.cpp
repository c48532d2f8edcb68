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

TEST_CASE("a handler of its own interruption may wait, within its grace", "[grace]") {
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

TEST_CASE("a handler that waits too long is interrupted when its grace is over", "[grace]") {
  options chosen;
  chosen.handler_grace = 50ms;
  run(chosen, [] {
    clock::duration waited{};
    int thrown = 0;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        const auto begun = clock::now();
        try {
          sleep();
        } catch (const cancelled&) {
          ++thrown;
        }
        waited = clock::now() - begun;
        if (throws_cancelled([] { sleep(); })) ++thrown;
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(thrown == 2);
    CHECK(waited >= 49ms);
    CHECK(waited < 150ms);
  });
}

TEST_CASE("no grace at all is an option", "[grace]") {
  options chosen;
  chosen.handler_grace = 0ms;
  run(chosen, [] {
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

TEST_CASE("the grace holds within handlers of other exceptions inside the handler", "[grace]") {
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

TEST_CASE("another interruption is thrown in a handler of the first", "[grace]") {
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

TEST_CASE("a time limit works in a handler of a cancellation", "[grace]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        limited = !move_on_after(10ms, [] { sleep(); });
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("a time limit works in a handler, though an older one inside has passed", "[grace]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      move_on_after(5ms, [&] {
        try {
          shield([] { sleep_for(20ms); });  // both have come when this is over
          sleep();
        } catch (const cancelled&) {
          limited = !move_on_after(10ms, [] { sleep(); });
          throw;
        }
      });
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("what spin throws into a cancelled fiber counts as having been told", "[grace]") {
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

TEST_CASE("a time limit works in a destructor that runs while its fiber unwinds", "[unwinding]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      const at_end cleaning{[&] { limited = !move_on_after(10ms, [] { sleep(); }); }};
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("nothing is thrown under a shield, and at the first switchpoint behind it", "[shield]") {
  run([] {
    bool finished = false;
    bool behind = false;
    auto worker = spin([&] {
      const int kept = shield([&] {
        sleep_for(20ms);
        snooze();
        finished = true;
        return 7;
      });
      CHECK(kept == 7);
      behind = throws_cancelled([] { snooze(); });
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(finished);
    CHECK(behind);
  });
}

TEST_CASE("of nested shields only the outermost lets interruptions in", "[shield]") {
  run([] {
    std::vector<int> reached;
    auto worker = spin([&] {
      shield([&] {
        shield([&] {
          sleep_for(5ms);
          reached.push_back(1);
        });
        sleep_for(5ms);
        reached.push_back(2);
      });
      sleep_for(5ms);
      reached.push_back(3);
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(reached == std::vector{1, 2});
  });
}

TEST_CASE("what is raised, what fails and what times out all wait outside a shield", "[shield]") {
  run([] {
    std::vector<std::string> told;
    auto worker = spin([&] {
      const bool in_time = move_on_after(5ms, [&] {
        shield([&] {
          spin([] { throw std::runtime_error("a child"); });
          sleep_for(20ms);
          told.emplace_back("nothing");
        });
        for (int i = 0; i < 2; ++i) {
          try {
            snooze();
          } catch (const std::exception& e) {
            told.emplace_back(e.what());
          }
        }
        sleep();
      });
      if (!in_time) told.emplace_back("late");
    });
    snooze();
    snooze();
    worker.raise(std::logic_error("raised"));
    worker.await();
    CHECK(told == std::vector<std::string>{"nothing", "raised", "a child", "late"});
  });
}

TEST_CASE("a time limit inside a shield ends what is inside", "[shield]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      shield([&] {
        try {
          with_timeout(10ms, [] { sleep(); });
        } catch (const timed_out&) {
          limited = true;
        }
      });
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("a shield is entered and left in a destructor on a normal exit", "[shield]") {
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

TEST_CASE("a cancelled fiber can spin under a shield, not outside", "[shield]") {
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

TEST_CASE("terminate asks, and insists in a shield when its grace is over", "[terminate]") {
  run([] {
    bool finished = false;
    auto worker = spin([&] {
      shield([&] {
        sleep();
        finished = true;
      });
    });
    snooze();
    const auto begun = clock::now();
    CHECK(worker.terminate(30ms) == cancel_result::accepted);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK_FALSE(finished);
    CHECK(clock::now() - begun >= 30ms);
    CHECK(clock::now() - begun < 200ms);
    CHECK(worker.terminate() == cancel_result::finished);
  });
}

TEST_CASE("terminate with no grace insists at once", "[terminate]") {
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

TEST_CASE("the shortest grace of several counts", "[terminate]") {
  run([] {
    auto worker = spin([] { shield([] { sleep(); }); });
    snooze();
    const auto begun = clock::now();
    worker.terminate(1h);
    worker.terminate(10ms);
    worker.terminate(10s);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(clock::now() - begun < 1s);
  });
}

TEST_CASE("nothing insists while a fiber unwinds", "[terminate]") {
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

TEST_CASE("terminate reaches children, also when they do not yet know", "[terminate]") {
  run([] {
    words trace;
    auto top = spin([&] {
      const note mine(trace, "top");
      spin([&] {
        const note its(trace, "child");
        shield([] { sleep(); });
      });
      group all;
      all.spin([&] {
        const note its(trace, "in a group");
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
    const auto begun = clock::now();
    CHECK(top.terminate(20ms) == cancel_result::accepted);
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    CHECK(clock::now() - begun >= 19ms);
    CHECK(clock::now() - begun < 2s);
    std::sort(trace.begin(), trace.end());
    CHECK(trace == words{"child", "grandchild", "in a group", "top"});
  });
}

TEST_CASE("terminate reaches the children of a fiber whose body is over", "[terminate]") {
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

TEST_CASE("what is spun after the grace is over is ended with its family", "[terminate]") {
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

TEST_CASE("a group's fibers are terminated together, and a deep tree takes no stack",
          "[terminate]") {
  run([] {
    constexpr int depth = 1'000;
    int ended = 0;
    struct tree {
      static void grow(int left, int& over) {
        const at_end done([&over] { ++over; });
        if (left > 1) spin([left, &over] { grow(left - 1, over); });
        shield([] { sleep(); });
      }
    };
    group all;
    all.spin([&] { tree::grow(depth, ended); });
    all.spin([&] { tree::grow(1, ended); });
    sleep_for(5ms);
    all.terminate(10ms);
    all.await_all();
    CHECK(ended == depth + 1);
    CHECK(all.size() == 0);
    all.terminate();
  });
}

TEST_CASE("terminate reaches children on other threads", "[terminate][thread]") {
  run([] {
    thread other([] { sleep(); });
    auto parent = spin([&] {
      auto child = other.spin([] { shield([] { sleep(); }); });
      shield([&] { child.await(); });
    });
    sleep_for(2ms);
    parent.terminate(5ms);
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
    other.cancel();
  });
}

TEST_CASE("terminate reaches what another thread was called for", "[terminate][thread]") {
  run([] {
    thread other([] { sleep(); });
    std::atomic<bool> begun{false};
    const auto caller = spin([&] {
      other.call([&] {
        begun = true;
        shield([] { sleep(); });
      });
    });
    while (!begun) sleep_for(1ms);
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
    other.cancel();
  });
}

TEST_CASE("a fiber that ends in time leaves nothing of its termination behind", "[terminate]") {
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

TEST_CASE("a grace without end is one", "[grace]") {
  options chosen;
  chosen.handler_grace = std::chrono::milliseconds::max();
  run(chosen, [] {
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

TEST_CASE("the grace of a handler begins in the handler", "[grace]") {
  options chosen;
  chosen.handler_grace = 50ms;
  run(chosen, [] {
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
