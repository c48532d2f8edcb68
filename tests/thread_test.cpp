// SPDX-License-Identifier: MIT
// Threads with fibers of their own: what begins, waits, fails and ends there, and who is told.
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::quiet;
using testing::run_here;

namespace {

using words = std::vector<std::string>;

struct first_error : std::runtime_error {
  first_error() : std::runtime_error("first") {}
};

/// One that waits to be given work.
motet::thread idle_thread() {
  return motet::thread(quiet(), [] { sleep(); });
}

/// Says when it is destroyed.
struct witness {
  explicit witness(std::atomic<int>& deaths) : counted(&deaths) {}
  witness(witness&& from) noexcept : counted(std::exchange(from.counted, nullptr)) {}
  ~witness() {
    if (counted != nullptr) ++*counted;
  }
  std::atomic<int>* counted;
};

}  // namespace

TEST_CASE("the function of a thread is a main fiber there", "[thread]") {
  std::thread::id there;
  bool orphan = false;
  bool can_spin = false;
  motet::thread one(quiet(), [&] {
    there = std::this_thread::get_id();
    orphan = !current().parent();
    can_spin = spin([] { return true; }).await();
  });
  one.await();
  CHECK(there != std::this_thread::get_id());
  CHECK(orphan);
  CHECK(can_spin);
}

TEST_CASE("awaiting a thread blocks only the fiber that does", "[thread]") {
  run_here([] {
    std::atomic<bool> go{false};
    motet::thread one(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
    });
    bool over = false;
    auto waiting = spin([&] {
      one.await();
      over = true;
    });
    for (int i = 0; i < 100; ++i) snooze();
    CHECK_FALSE(over);
    go = true;
    waiting.await();
    CHECK(over);
  });
}

TEST_CASE("awaiting a thread rethrows what its function threw, as often as one likes", "[thread]") {
  motet::thread one(quiet(), [] { throw first_error(); });
  CHECK_THROWS_AS(one.await(), first_error);
  run_here([&] { CHECK_THROWS_AS(one.await(), first_error); });
}

TEST_CASE("a failure there that nobody was told of is the thread's", "[thread]") {
  motet::thread one(quiet(), [] {
    spin([] { throw first_error(); });
    shield([] { snooze(); });
  });
  CHECK_THROWS_AS(one.await(), first_error);
}

TEST_CASE("a failure that nobody awaits is told when the thread object goes", "[thread]") {
  std::vector<std::string> told;
  options how = quiet();
  how.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      told.emplace_back(e.what());
    }
  };
  {
    motet::thread one(how, [] { throw first_error(); });
  }
  CHECK(told == words{"first"});
  {
    motet::thread one(how, [] { throw first_error(); });
    CHECK_THROWS_AS(one.await(), first_error);
  }
  CHECK(told == words{"first"});
}

namespace {

std::atomic<bool> thread_local_lived{false};
struct long_lived {
  bool alive = true;
  ~long_lived() { alive = false; }
};
thread_local long_lived of_thread;

}  // namespace

TEST_CASE("a thread's end ends its fibers before its thread-locals die", "[thread]") {
  thread_local_lived = false;
  std::atomic<bool> cleaned{false};
  motet::thread one(quiet(), [&] {
    of_thread.alive = true;
    spin([&] {
      try {
        sleep();
      } catch (...) {
        snooze();
        thread_local_lived = of_thread.alive;
        cleaned = true;
        throw;
      }
    });
    snooze();
  });
  one.await();
  CHECK(cleaned);
  CHECK(thread_local_lived);
}

TEST_CASE("destroying a thread object cancels its function and waits for the end", "[thread]") {
  std::atomic<bool> cleaned{false};
  const auto clean_up_slowly = [&] {
    try {
      sleep();
    } catch (const cancelled&) {
      sleep_for(2ms);
      cleaned = true;
      throw;
    }
  };
  {
    motet::thread one(quiet(), clean_up_slowly);
    one.call([] {});  // it is in its sleep
  }
  CHECK(cleaned);
  cleaned = false;
  run_here([&] {
    bool others_ran = false;
    spin([&] { others_ran = true; });
    {
      motet::thread one(quiet(), clean_up_slowly);
      one.call([] {});
    }
    CHECK(others_ran);
  });
  CHECK(cleaned);
}

TEST_CASE("a cancelled thread's awaiters learn why", "[thread]") {
  motet::thread one = idle_thread();
  CHECK(one.cancel("enough") == cancel_result::accepted);
  try {
    one.await();
    FAIL("it was cancelled");
  } catch (const fiber_cancelled& how) {
    CHECK(how.reason() == std::string("enough"));
  }
}

TEST_CASE("a thread that cannot begin says why", "[thread]") {
  options wrong;
  wrong.backend = "no such";
  CHECK_THROWS_AS(motet::thread(wrong, [] {}), std::invalid_argument);
  options impossible;
  impossible.switches_between_polls = 0;
  run_here([&] { CHECK_THROWS_AS(motet::thread(impossible, [] {}), std::invalid_argument); });
}

TEST_CASE("a thread object can be moved, and is then another's", "[thread]") {
  motet::thread one = idle_thread();
  motet::thread other = std::move(one);
  CHECK_THROWS_AS(one.await(), std::logic_error);
  CHECK_THROWS_AS(one.post([] {}), std::logic_error);
  CHECK(other.call([] { return 3; }) == 3);
  other = idle_thread();
  CHECK(other.call([] { return 4; }) == 4);
}

TEST_CASE("a thread object that goes on its own thread lets it go on alone", "[thread]") {
  std::atomic<bool> over{false};
  auto one = std::make_shared<std::optional<motet::thread>>();
  one->emplace(quiet(), [&] {
    try {
      sleep();
    } catch (const cancelled&) {
    }
  });
  (*one)->post([one, &over]() mutable {
    const auto main = current().parent();
    one->reset();
    over = true;
    main.cancel();
  });
  one.reset();
  while (!over) std::this_thread::sleep_for(100us);
}

// post()

TEST_CASE("what is posted runs in order, each on a fiber of its own", "[thread][post]") {
  motet::thread one = idle_thread();
  std::vector<int> order;
  std::vector<std::uint64_t> fibers;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) {
    one.post([&, i] {
      order.push_back(i);
      fibers.push_back(current().id());
      where = std::this_thread::get_id();
    });
  }
  one.call([&] { CHECK(where == std::this_thread::get_id()); });
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  std::sort(fibers.begin(), fibers.end());
  CHECK(std::adjacent_find(fibers.begin(), fibers.end()) == fibers.end());
}

TEST_CASE("a posted function is a child of the main fiber, which hears of its failure",
          "[thread][post]") {
  std::string told;
  std::atomic<bool> is_child{false};
  motet::thread one(quiet(), [&] {
    try {
      sleep();
    } catch (const first_error& error) {
      told = error.what();
    }
  });
  one.post([&] {
    is_child = !current().parent().parent();
    throw first_error();
  });
  one.await();
  CHECK(is_child);
  CHECK(told == "first");
}

TEST_CASE("a thread that has ended takes no more work, and says so", "[thread][post]") {
  motet::thread one(quiet(), [] {});
  one.await();
  std::atomic<int> destroyed{0};
  bool ran = false;
  CHECK_THROWS_AS(one.post([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
  CHECK(destroyed == 1);
  CHECK_THROWS_AS(one.call([&] { ran = true; }), executor_stopped);
  CHECK_THROWS_AS(one.spin([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
  CHECK(destroyed == 2);
  run_here([&] {
    CHECK_THROWS_AS(one.call([&] { ran = true; }), executor_stopped);
    CHECK_THROWS_AS(one.spin([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
    CHECK(current().children().empty());
  });
  CHECK(destroyed == 3);
  CHECK_FALSE(ran);
}

TEST_CASE("what has not begun when a thread ends is destroyed", "[thread][post]") {
  std::atomic<bool> go{false};
  std::atomic<int> destroyed{0};
  std::atomic<int> ran{0};
  motet::thread one(quiet(), [&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  for (int i = 0; i < 10; ++i) one.post([&ran, kept = witness(destroyed)] { ++ran; });
  go = true;
  one.await();
  CHECK(ran == 0);
  CHECK(destroyed == 10);
}

TEST_CASE("a great many small jobs take few stacks", "[thread][post]") {
  const auto count =
      static_cast<int>(testing::scaled(testing::under_tsan ? 100'000 : 1'000'000, 20'000));
  motet::thread one = idle_thread();
  std::atomic<bool> go{false};
  one.post([&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  int ran = 0;
  std::size_t most = 0;
  for (int i = 0; i < count; ++i) {
    one.post([&] {
      ++ran;
      if (ran % 64 == 0) most = std::max(most, current().parent().children().size());
    });
  }
  go = true;
  one.call([] {});
  CHECK(ran == count);
  CHECK(most <= 100);
}

namespace {

/// Spins a child that lasts when it is destroyed.
struct late_spinner {
  explicit late_spinner(event& until) : lasts_until(&until) {}
  late_spinner(late_spinner&& from) noexcept
      : lasts_until(std::exchange(from.lasts_until, nullptr)) {}
  ~late_spinner() {
    if (lasts_until == nullptr) return;
    spin([until = lasts_until] { shield([&] { until->wait(); }); });
    snooze();
  }
  event* lasts_until;
};

}  // namespace

TEST_CASE("what a capture spins when it is destroyed keeps no other function waiting",
          "[thread][post]") {
  motet::thread one = idle_thread();
  event over;
  one.post([kept = late_spinner(over)] {});
  one.post([&] { over.set(); });
  over.wait();
}

TEST_CASE("a thread that has gone on alone still tells how it failed", "[thread]") {
  std::atomic<bool> told{false};
  options how = quiet();
  how.on_unhandled = [&](const std::exception_ptr&) { told = true; };
  auto one = std::make_shared<std::optional<motet::thread>>();
  one->emplace(how, [] {
    suspend<bool>();
    throw first_error();
  });
  (*one)->post([kept = one]() mutable {
    const auto main = current().parent();
    kept->reset();
    main.schedule(true);
  });
  while (!told) std::this_thread::sleep_for(100us);
}

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

// Wakes

TEST_CASE("no wake is lost between a thread that goes to sleep and those that wake it",
          "[thread][stress]") {
  const auto wakes = static_cast<int>(testing::under_tsan ? testing::scaled(200'000, 10'000)
                                      : testing::on_sim() ? testing::scaled(1'000'000, 100'000)
                                                          : testing::scaled(10'000'000, 100'000));
  for (const auto busy : {0us, 100us}) {
    options how = quiet();
    how.busy_wait = busy;
    motet::thread one(how, [] { sleep(); });
    std::atomic<int> heard{0};
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i <= wakes / 2; ++i) {
      one.post([&] { heard.fetch_add(1, std::memory_order_relaxed); });
      for (auto since = std::chrono::steady_clock::now(); heard < i;) {
        // Each is waited for, so that the next one finds a thread that is just going to sleep.
        if (std::chrono::steady_clock::now() - since > 5s) {
          FAIL("wake " << i << " of " << wakes << " was lost");
        }
        if (i % 64 == 0) std::this_thread::yield();
      }
    }
    INFO("per wake: " << (std::chrono::steady_clock::now() - begin) / (wakes / 2));
    CHECK(heard == wakes / 2);
  }
}

TEST_CASE("threads begin and end while others give them work", "[thread][stress]") {
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(1'000, 40)
                                                           : testing::scaled(10'000, 300));
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  int taken = 0;
  for (int i = 0; i < rounds; ++i) {
    motet::thread one(quiet(), [i] {
      if (i % 3 == 0) sleep_for(50us);
    });
    std::atomic<bool> stop{false};
    std::atomic<int> left{0};
    std::thread poster([&] {
      while (!stop) {
        try {
          one.post([&begun, kept = witness(destroyed)] { ++begun; });
          ++left;
        } catch (const executor_stopped&) {
          --destroyed;  // the one that was refused
          return;
        }
      }
    });
    if (i % 2 == 0) one.await();
    stop = i % 2 != 0;
    poster.join();
    one.await();
    taken += left;
  }
  CHECK(destroyed == taken);
  CHECK(begun <= taken);
}

TEST_CASE("a thread without work sleeps", "[thread]") {
  if (testing::on_sim()) return;
  motet::thread one = idle_thread();
  const auto used = [&] {
    return one.call([] {
      timespec spent{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
      return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
    });
  };
  const auto before = used();
  const auto length = testing::scaled(10'000, 500);
  std::this_thread::sleep_for(std::chrono::milliseconds(length));
  CHECK(used() - before < 5ms);
}
