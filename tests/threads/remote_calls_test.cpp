// SPDX-License-Identifier: MIT
// Calls of other threads, and fibers spun there: whose they are, what comes back, what ends them.
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"
#include "threads/idle_thread.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::first_error;
using testing::quiet;
using testing::run_here;
using testing::on_threads::idle_thread;
using testing::on_threads::witness;

// call()

TEST_CASE("a call runs there, and brings back what it returned or threw", "[thread][call]") {
  const auto check = [] {
    motet::thread one = idle_thread();
    int borrowed = 1;
    CHECK(one.call([&] { return ++borrowed; }) == 2);
    CHECK(borrowed == 2);
    one.call([&] { ++borrowed; });
    CHECK(borrowed == 3);
    auto owned = one.call([] { return std::make_unique<int>(7); });
    CHECK(*owned == 7);
    CHECK_THROWS_AS(one.call([] { throw first_error(); }), first_error);
    CHECK(one.call([] { return std::string(1000, 'x'); }).size() == 1000);
    const auto there = one.call([] { return std::this_thread::get_id(); });
    CHECK(there != std::this_thread::get_id());
    CHECK(there == one.call([] { return current().home(); }));
  };
  check();
  run_here(check);
}

TEST_CASE("other fibers run while one calls another thread", "[thread][call]") {
  run_here([] {
    motet::thread one = idle_thread();
    std::atomic<bool> go{false};
    bool over = false;
    auto caller = spin([&] {
      one.call([&] {
        while (!go) sleep_for(100us);
      });
      over = true;
    });
    for (int i = 0; i < 100; ++i) snooze();
    CHECK_FALSE(over);
    go = true;
    caller.await();
  });
}

TEST_CASE("the fiber of a call has its caller as its parent", "[thread][call]") {
  run_here([] {
    motet::thread one = idle_thread();
    const fiber_ref me = current();
    CHECK(one.call([] { return current().parent(); }) == me);
    CHECK(one.call([&] { return current().parent().id() == me.id(); }));
  });
}

TEST_CASE("an interruption of the caller cancels the call, and waits for it", "[thread][call]") {
  run_here([] {
    motet::thread one = idle_thread();
    std::atomic<bool> begun{false};
    std::atomic<bool> cleaned{false};
    auto caller = spin([&] {
      one.call([&] {
        begun = true;
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(2ms);
          cleaned = true;
          throw;
        }
      });
    });
    while (!begun) snooze();
    caller.raise(first_error());
    CHECK_THROWS_AS(caller.await(), first_error);
    CHECK(cleaned);
  });
}

TEST_CASE("a deadline ends a call", "[thread][call]") {
  run_here([] {
    motet::thread one = idle_thread();
    CHECK_THROWS_AS(with_timeout(2ms, [&] { one.call([] { sleep(); }); }), timed_out);
  });
}

TEST_CASE("an interrupted call that has not begun never does", "[thread][call]") {
  run_here([] {
    std::atomic<bool> go{false};
    motet::thread one(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
      sleep();
    });
    std::atomic<bool> ran{false};
    auto caller = spin([&] { one.call([&] { ran = true; }); });
    snooze();
    caller.raise(first_error());
    snooze();
    go = true;
    CHECK_THROWS_AS(caller.await(), first_error);
    CHECK_FALSE(ran);
  });
}

TEST_CASE("a call that comes to a value all the same returns it, and is interrupted later",
          "[thread][call]") {
  run_here([] {
    motet::thread one = idle_thread();
    std::atomic<bool> begun{false};
    std::atomic<bool> go{false};
    auto caller = spin([&] {
      const int value = one.call([&] {
        begun = true;
        return shield([&] {
          while (!go) sleep_for(100us);
          return 5;
        });
      });
      CHECK_THROWS_AS(snooze(), first_error);
      return value;
    });
    while (!begun) snooze();
    caller.raise(first_error());
    for (int i = 0; i < 10; ++i) snooze();
    go = true;
    CHECK(caller.await() == 5);
  });
}

TEST_CASE("a call whose thread ends is told so", "[thread][call]") {
  run_here([] {
    std::atomic<bool> begun{false};
    motet::thread one(quiet(), [&] {
      while (!begun) sleep_for(100us);
    });
    CHECK_THROWS_AS(one.call([&] {
      begun = true;
      sleep();
    }),
                    fiber_cancelled);
  });
}

TEST_CASE("two threads call each other, and themselves", "[thread][call]") {
  motet::thread a = idle_thread();
  motet::thread b = idle_thread();
  CHECK(a.call([&] { return b.call([&] { return a.call([] { return 1; }) + 1; }) + 1; }) == 3);
  CHECK(a.call([&] { return a.call([] { return 1; }) + 1; }) == 2);
}

// spin()

TEST_CASE("a fiber spun on another thread is a child of the one that spun it", "[thread][spin]") {
  run_here([] {
    motet::thread one = idle_thread();
    auto child = one.spin([] { return suspend<int>(); });
    CHECK(child.parent() == current());
    CHECK(child.home() != std::this_thread::get_id());
    const auto children = current().children();
    REQUIRE(children.size() == 1);
    CHECK(children[0] == child);
    child.schedule(4);
    CHECK(child.await() == 4);
    CHECK(std::move(child).await() == 4);
    while (!current().children().empty()) snooze();
  });
}

TEST_CASE("a fiber spun by a plain thread is a child of the main fiber there", "[thread][spin]") {
  motet::thread one = idle_thread();
  auto child = one.spin([owned = std::make_unique<int>(3)] { return *owned; });
  CHECK(child.await() == 3);
  CHECK_FALSE(child.parent().parent());
}

TEST_CASE("on its own thread spin() spins as ever", "[thread][spin]") {
  motet::thread one = idle_thread();
  one.call([&] {
    auto child = one.spin([] { return 1; });
    CHECK(child.parent() == current());
    CHECK(child.await() == 1);
  });
}

TEST_CASE("the failure of a child on another thread reaches its parent", "[thread][spin]") {
  run_here([] {
    motet::thread one = idle_thread();
    one.spin([] { throw first_error(); });
    CHECK_THROWS_AS(sleep(), first_error);
    snooze();
  });
}

TEST_CASE("a failure on another thread that somebody awaits is told once", "[thread][spin]") {
  run_here([] {
    const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(2'000, 200)
                                                             : testing::scaled(20'000, 1'000));
    motet::thread one = idle_thread();
    for (int i = 0; i < rounds; ++i) {
      auto child = one.spin([i] {
        for (int waits = 0; waits < i % 3; ++waits) snooze();
        throw first_error();
      });
      if (i % 4 == 0) std::this_thread::sleep_for(i % 8 == 0 ? 1us : 20us);
      CHECK_THROWS_AS(child.await(), first_error);
      for (int waits = 0; waits < 3; ++waits) CHECK_NOTHROW(snooze());
    }
  });
}

TEST_CASE("a parent ends its children on other threads, and waits for them", "[thread][spin]") {
  run_here([] {
    motet::thread one = idle_thread();
    motet::thread other = idle_thread();
    std::atomic<int> cleaned{0};
    const auto last_long = [&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(1ms);
        ++cleaned;
        throw;
      }
    };
    auto parent = spin([&] {
      for (int i = 0; i < 3; ++i) {
        one.spin(last_long);
        other.spin(last_long);
      }
      one.call([] {});
      other.call([] {});
    });
    parent.await();
    CHECK(cleaned == 6);
  });
}

TEST_CASE("a child whose thread ends is cancelled, which is no failure of its parent",
          "[thread][spin]") {
  run_here([] {
    auto one = std::make_optional(idle_thread());
    auto child = one->spin([] { sleep(); });
    one.reset();
    CHECK(child.state() == fiber_state::dead);
    for (int i = 0; i < 10; ++i) CHECK_NOTHROW(snooze());
    CHECK_THROWS_AS(child.await(), fiber_cancelled);
  });
}

TEST_CASE("a spin that is interrupted before it has happened does not happen", "[thread][spin]") {
  run_here([] {
    std::atomic<bool> go{false};
    std::atomic<int> destroyed{0};
    std::atomic<bool> ran{false};
    motet::thread one(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
      sleep();
    });
    auto spinner = spin([&] { one.spin([&ran, kept = witness(destroyed)] { ran = true; }); });
    snooze();
    spinner.raise(first_error());
    snooze();
    go = true;
    CHECK_THROWS_AS(spinner.await(), first_error);
    CHECK(destroyed == 1);
    CHECK_FALSE(ran);
  });
}

TEST_CASE("who is cancelled spins nothing on another thread", "[thread][spin]") {
  run_here([] {
    motet::thread one = idle_thread();
    std::atomic<bool> ran{false};
    auto f = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        one.spin([&] { ran = true; });
      }
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    one.call([] {});
    CHECK_FALSE(ran);
  });
}

TEST_CASE("a grandchild may come home", "[thread][spin]") {
  run_here([] {
    motet::thread here(quiet(), [] {
      motet::thread there = idle_thread();
      sleep();
    });
    motet::thread one = idle_thread();
    motet::thread two = idle_thread();
    auto child = one.spin([&] {
      auto grandchild = two.spin([&] { return one.call([] { return current().home(); }); });
      CHECK(grandchild.parent() == current());
      return grandchild.await() == current().home();
    });
    CHECK(child.await());
  });
}
