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

TEST_CASE("thread::call() runs on the thread, and returns or throws the function's result",
          "[thread][call]") {
  const auto check = [] {
    motet::thread worker = idle_thread();
    int number = 1;
    CHECK(worker.call([&] { return ++number; }) == 2);
    CHECK(number == 2);
    worker.call([&] { ++number; });
    CHECK(number == 3);
    auto pointer = worker.call([] { return std::make_unique<int>(7); });
    CHECK(*pointer == 7);
    CHECK_THROWS_AS(worker.call([] { throw first_error(); }), first_error);
    CHECK(worker.call([] { return std::string(1000, 'x'); }).size() == 1000);
    const auto remote_id = worker.call([] { return std::this_thread::get_id(); });
    CHECK(remote_id != std::this_thread::get_id());
    CHECK(remote_id == worker.call([] { return current().home(); }));
  };
  check();
  run_here(check);
}

TEST_CASE("thread::call() lets other fibers run while it waits", "[thread][call]") {
  run_here([] {
    motet::thread worker = idle_thread();
    std::atomic<bool> go{false};
    bool finished = false;
    auto caller = spin([&] {
      worker.call([&] {
        while (!go) sleep_for(100us);
      });
      finished = true;
    });
    for (int i = 0; i < 100; ++i) snooze();
    CHECK_FALSE(finished);
    go = true;
    caller.await();
  });
}

TEST_CASE("thread::call(): the caller is the parent of the call's fiber", "[thread][call]") {
  run_here([] {
    motet::thread worker = idle_thread();
    const fiber_ref me = current();
    CHECK(worker.call([] { return current().parent(); }) == me);
    CHECK(worker.call([&] { return current().parent().id() == me.id(); }));
  });
}

TEST_CASE("thread::call() cancels the call when its caller is interrupted, and waits for it",
          "[thread][call]") {
  run_here([] {
    motet::thread worker = idle_thread();
    std::atomic<bool> started{false};
    std::atomic<bool> cleaned{false};
    auto caller = spin([&] {
      worker.call([&] {
        started = true;
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(2ms);
          cleaned = true;
          throw;
        }
      });
    });
    while (!started) snooze();
    caller.raise(first_error());
    CHECK_THROWS_AS(caller.await(), first_error);
    CHECK(cleaned);
  });
}

TEST_CASE("thread::call() ends at a deadline", "[thread][call]") {
  run_here([] {
    motet::thread worker = idle_thread();
    CHECK_THROWS_AS(with_timeout(2ms, [&] { worker.call([] { sleep(); }); }), timed_out);
  });
}

TEST_CASE("thread::call() that is interrupted before its start never runs",
          "[thread][call][real]") {
  run_here([] {
    std::atomic<bool> go{false};
    motet::thread worker(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
      sleep();
    });
    std::atomic<bool> ran{false};
    auto caller = spin([&] { worker.call([&] { ran = true; }); });
    snooze();
    caller.raise(first_error());
    snooze();
    go = true;
    CHECK_THROWS_AS(caller.await(), first_error);
    CHECK_FALSE(ran);
  });
}

TEST_CASE("thread::call() returns a value despite an interruption, which is thrown later",
          "[thread][call]") {
  run_here([] {
    motet::thread worker = idle_thread();
    std::atomic<bool> started{false};
    std::atomic<bool> go{false};
    auto caller = spin([&] {
      const int value = worker.call([&] {
        started = true;
        return shield([&] {
          while (!go) sleep_for(100us);
          return 5;
        });
      });
      CHECK_THROWS_AS(snooze(), first_error);
      return value;
    });
    while (!started) snooze();
    caller.raise(first_error());
    for (int i = 0; i < 10; ++i) snooze();
    go = true;
    CHECK(caller.await() == 5);
  });
}

TEST_CASE("thread::call() throws if its thread ends", "[thread][call]") {
  run_here([] {
    std::atomic<bool> started{false};
    motet::thread worker(quiet(), [&] {
      while (!started) sleep_for(100us);
    });
    CHECK_THROWS_AS(worker.call([&] {
      started = true;
      sleep();
    }),
                    fiber_cancelled);
  });
}

TEST_CASE("thread::call() works between two threads in both directions, and on itself",
          "[thread][call][real]") {
  motet::thread a = idle_thread();
  motet::thread b = idle_thread();
  CHECK(a.call([&] { return b.call([&] { return a.call([] { return 1; }) + 1; }) + 1; }) == 3);
  CHECK(a.call([&] { return a.call([] { return 1; }) + 1; }) == 2);
}

// spin()

TEST_CASE("thread::spin() makes the fiber a child of the caller", "[thread][spin]") {
  run_here([] {
    motet::thread worker = idle_thread();
    auto child = worker.spin([] { return suspend<int>(); });
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

TEST_CASE("thread::spin() from a plain thread makes a child of the thread's main fiber",
          "[thread][spin][real]") {
  motet::thread worker = idle_thread();
  auto child = worker.spin([payload = std::make_unique<int>(3)] { return *payload; });
  CHECK(child.await() == 3);
  CHECK_FALSE(child.parent().parent());
}

TEST_CASE("thread::spin() on its own thread acts like spin()", "[thread][spin][real]") {
  motet::thread worker = idle_thread();
  worker.call([&] {
    auto child = worker.spin([] { return 1; });
    CHECK(child.parent() == current());
    CHECK(child.await() == 1);
  });
}

TEST_CASE("thread::spin(): a child's failure reaches its parent on the other thread",
          "[thread][spin]") {
  run_here([] {
    motet::thread worker = idle_thread();
    worker.spin([] { throw first_error(); });
    CHECK_THROWS_AS(sleep(), first_error);
    snooze();
  });
}

TEST_CASE("thread::spin(): a failure that a remote fiber awaits is thrown only once",
          "[thread][spin]") {
  run_here([] {
    const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(2'000, 200)
                                                             : testing::scaled(20'000, 1'000));
    motet::thread worker = idle_thread();
    for (int i = 0; i < rounds; ++i) {
      auto child = worker.spin([i] {
        for (int waits = 0; waits < i % 3; ++waits) snooze();
        throw first_error();
      });
      if (i % 4 == 0) std::this_thread::sleep_for(i % 8 == 0 ? 1us : 20us);
      CHECK_THROWS_AS(child.await(), first_error);
      for (int waits = 0; waits < 3; ++waits) CHECK_NOTHROW(snooze());
    }
  });
}

TEST_CASE("thread::spin(): a parent ends its children on other threads, and waits for them",
          "[thread][spin]") {
  run_here([] {
    motet::thread worker = idle_thread();
    motet::thread second = idle_thread();
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
        worker.spin(last_long);
        second.spin(last_long);
      }
      worker.call([] {});
      second.call([] {});
    });
    parent.await();
    CHECK(cleaned == 6);
  });
}

TEST_CASE("thread::spin(): a child whose thread ends is cancelled, and its parent does not fail",
          "[thread][spin]") {
  run_here([] {
    auto worker = std::make_optional(idle_thread());
    auto child = worker->spin([] { sleep(); });
    worker.reset();
    CHECK(child.state() == fiber_state::dead);
    for (int i = 0; i < 10; ++i) CHECK_NOTHROW(snooze());
    CHECK_THROWS_AS(child.await(), fiber_cancelled);
  });
}

TEST_CASE("thread::spin() that is interrupted before it takes effect spins nothing",
          "[thread][spin][real]") {
  run_here([] {
    std::atomic<bool> go{false};
    std::atomic<int> destroyed{0};
    std::atomic<bool> ran{false};
    motet::thread worker(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
      sleep();
    });
    auto spinner = spin([&] { worker.spin([&ran, payload = witness(destroyed)] { ran = true; }); });
    snooze();
    spinner.raise(first_error());
    snooze();
    go = true;
    CHECK_THROWS_AS(spinner.await(), first_error);
    CHECK(destroyed == 1);
    CHECK_FALSE(ran);
  });
}

TEST_CASE("thread::spin() is refused in a cancelled fiber", "[thread][spin]") {
  run_here([] {
    motet::thread worker = idle_thread();
    std::atomic<bool> ran{false};
    auto f = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        worker.spin([&] { ran = true; });
      }
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    worker.call([] {});
    CHECK_FALSE(ran);
  });
}

TEST_CASE("thread::spin(): a grandchild may run on its grandparent's thread", "[thread][spin]") {
  run_here([] {
    motet::thread home(quiet(), [] {
      motet::thread origin_thread = idle_thread();
      sleep();
    });
    motet::thread worker = idle_thread();
    motet::thread two = idle_thread();
    auto child = worker.spin([&] {
      auto grandchild = two.spin([&] { return worker.call([] { return current().home(); }); });
      CHECK(grandchild.parent() == current());
      return grandchild.await() == current().home();
    });
    CHECK(child.await());
  });
}
