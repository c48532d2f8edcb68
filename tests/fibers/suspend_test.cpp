// SPDX-License-Identifier: MIT
// Tokens: what schedule() gives and suspend() takes, and what comes in its place.
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::counted;
using testing::oops;
using testing::words;
using numbers = std::vector<int>;

namespace {

struct large {
  explicit large(int number) { values.fill(number); }
  std::array<int, 50> values;
};

}  // namespace

TEST_CASE("suspend() returns only after schedule()", "[order]") {
  run([] {
    numbers events;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(spin([&events, i] {
        suspend();
        events.push_back(i);
      }));
    }
    snooze();
    CHECK(fibers[0].schedule());
    CHECK(events.empty());
    snooze();
    CHECK(events == numbers{0});
    CHECK(fibers[0].state() == fiber_state::dead);
    fibers[1].schedule();
    fibers[2].schedule();
    snooze();
    CHECK(events == numbers{0, 1, 2});
  });
}

TEST_CASE("fiber::schedule() does not switch, and keeps the order of the calls", "[order]") {
  run([] {
    words trace;
    std::vector<fiber<void>> fibers;
    for (const char* name : {"a", "b", "c"}) {
      fibers.push_back(spin([&trace, name] {
        suspend();
        trace.emplace_back(name);
      }));
    }
    snooze();
    fibers[2].schedule();
    fibers[0].schedule();
    fibers[1].schedule();
    trace.emplace_back("main");
    suspend();
    CHECK(trace == words{"main", "c", "a", "b"});
  });
}

TEST_CASE("fiber::schedule() a second time replaces the value, not the place in the queue",
          "[token]") {
  run([] {
    words trace;
    auto wait = [&trace](const char* name) {
      trace.push_back(name + std::to_string(suspend<int>()));
    };
    auto a = spin([&] { wait("a"); });
    auto b = spin([&] { wait("b"); });
    snooze();
    CHECK(a.schedule(1));
    CHECK(b.schedule(2));
    CHECK(a.schedule(3));
    suspend();
    CHECK(trace == words{"a3", "b2"});
  });
}

TEST_CASE("fiber::schedule() several times runs the fiber once", "[token]") {
  run([] {
    int turns = 0;
    auto f = spin([&] {
      for (;;) {
        suspend();
        ++turns;
      }
    });
    snooze();
    for (int i = 0; i < 10; ++i) f.schedule();
    suspend();
    CHECK(turns == 1);
  });
}

TEST_CASE("suspend() returns the last token that was given before it", "[token]") {
  run([] {
    auto f = spin([] {
      snooze();
      const int first = suspend<int>();
      const int second = suspend<int>();
      return std::pair(first, second);
    });
    f.schedule(1);
    f.schedule(2);
    while (f.state() != fiber_state::waiting) snooze();
    CHECK(f.schedule(3));
    CHECK(f.await() == std::pair(2, 3));
  });
}

TEST_CASE("fiber::raise() replaces a token that suspend() has not yet returned", "[token]") {
  run([] {
    for (const bool early : {false, true}) {
      auto f = spin([] { return suspend<int>(); });
      if (early) f.schedule(1);
      snooze();
      if (!early) f.schedule(1);
      f.raise(std::runtime_error("instead"));
      CHECK_THROWS_WITH(f.await(), "instead");
    }
  });
}

TEST_CASE("suspend() is a switchpoint even when its token is already there", "[token]") {
  run([] {
    words trace;
    auto f = spin([&] {
      trace.emplace_back("before");
      suspend();
      trace.emplace_back("after");
    });
    f.schedule();
    spin([&] { trace.emplace_back("other"); });
    suspend();
    CHECK(trace == words{"before", "other", "after"});
  });
}

TEST_CASE("suspend() throws a logic error for a token of another type", "[token]") {
  run([] {
    auto f = spin([] {
      CHECK_THROWS_AS(suspend<int>(), std::logic_error);
      CHECK_THROWS_AS(suspend<std::string>(), std::logic_error);
      CHECK_THROWS_AS(suspend(), std::logic_error);
      return suspend<int>();
    });
    snooze();
    f.schedule(1.5);
    snooze();
    f.schedule();
    snooze();
    f.schedule(std::string("x"));
    snooze();
    f.schedule(9);
    CHECK(f.await() == 9);
  });
}

TEST_CASE("suspend(): a token may be move-only and larger than its inline storage", "[token]") {
  run([] {
    auto f = spin([] {
      const auto pointer = suspend<std::unique_ptr<int>>();
      const large many = suspend<large>();
      return *pointer + many.values[0] + many.values[49];
    });
    snooze();
    f.schedule(std::make_unique<int>(1));
    snooze();
    f.schedule(large(10));
    CHECK(f.await() == 21);
  });
}

TEST_CASE("suspend(): every token is destroyed once, whether returned or not", "[token]") {
  int alive = 0;
  run([&] {
    auto taker = spin([] {
      const auto token = suspend<counted>();
      return *token.alive;
    });
    taker.schedule(counted(alive));
    taker.schedule(counted(alive));
    CHECK(alive == 1);
    CHECK(taker.await() == 1);
    CHECK(alive == 0);
    auto idle = spin([] { sleep(); });
    snooze();
    idle.schedule(counted(alive));
    auto dead = spin([] {});
    dead.await();
    CHECK(!dead.schedule(counted(alive)));
    CHECK(alive == 1);
  });
  CHECK(alive == 0);
}

TEST_CASE("fiber::schedule() never wakes a sleep; the token waits for the next suspend()",
          "[token]") {
  run([] {
    const auto start = clock::now();
    auto f = spin([start] {
      sleep_for(10ms);
      CHECK(clock::now() - start >= 10ms);
      return suspend<int>();
    });
    snooze();
    CHECK(f.schedule(5));
    CHECK(f.state() == fiber_state::waiting);
    CHECK(f.await() == 5);
  });
}

TEST_CASE("fiber::schedule() never wakes a read", "[token]") {
  run([] {
    auto ends = testing::make_pipe();
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      const std::size_t count = io::read(ends.first(), buffer);
      return std::pair(count, suspend<int>());
    });
    snooze();
    CHECK(f.schedule(5));
    sleep_for(2ms);
    CHECK(f.state() == fiber_state::waiting);
    io::write(ends.second(), testing::bytes_of("abc"));
    CHECK(f.await() == std::pair(std::size_t{3}, 5));
  });
}

TEST_CASE("fiber::schedule() never wakes an await, a group or a suspend_with()", "[token]") {
  run([] {
    auto slow = spin([] { sleep_for(5ms); });
    auto awaiting = spin([&] {
      slow.await();
      CHECK(slow.state() == fiber_state::dead);
      return suspend<int>();
    });
    auto grouping = spin([] {
      bool finished = false;
      group members;
      members.spin([&] {
        sleep_for(5ms);
        finished = true;
      });
      members.await_all();
      CHECK(finished);
      return suspend<int>();
    });
    std::optional<resumer<int>> stored;
    auto resumer_fiber = spin([&] {
      const int value = suspend_with<int>([&](resumer<int> r) { stored.emplace(std::move(r)); });
      return 10 * value + suspend<int>();
    });
    snooze();
    for (const fiber_ref& handle :
         {fiber_ref(awaiting), fiber_ref(grouping), fiber_ref(resumer_fiber)}) {
      CHECK(handle.schedule(1));
      CHECK(handle.state() == fiber_state::waiting);
    }
    (*stored)(4);
    CHECK(awaiting.await() == 1);
    CHECK(grouping.await() == 1);
    CHECK(resumer_fiber.await() == 41);
  });
}

TEST_CASE("fiber::schedule() on the current fiber is a logic error without an effect", "[token]") {
  run([] {
    CHECK_THROWS_AS(current().schedule(), std::logic_error);
    CHECK_THROWS_AS(current().schedule(1), std::logic_error);
    auto f = spin([] {
      CHECK_THROWS_AS(current().schedule(1), std::logic_error);
      return suspend<int>();
    });
    snooze();
    CHECK(f.state() == fiber_state::waiting);
    f.schedule(2);
    CHECK(f.await() == 2);
    suspend();
  });
}

TEST_CASE("fiber::schedule() on a dead fiber resumes nobody", "[token]") {
  run([] {
    auto dead = spin([] { return 1; });
    dead.await();
    bool scheduled = true;
    spin([&] { scheduled = dead.schedule(2); });
    const auto start = clock::now();
    sleep_for(5ms);
    CHECK(clock::now() - start >= 5ms);
    CHECK(!scheduled);
    CHECK(dead.await() == 1);
  });
}

TEST_CASE("fiber::raise() destroys a pending token of any type", "[token]") {
  run([] {
    const auto replaced = [](auto give) {
      auto suspended_fiber = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      give(suspended_fiber);
      suspended_fiber.raise(oops());
      CHECK(suspended_fiber.await());
    };
    replaced([](const fiber_ref& target) { target.schedule(); });
    replaced([](const fiber_ref& target) { target.schedule(3); });
    replaced([](const fiber_ref& target) { target.schedule(std::array<int, 100>{}); });
    replaced([](const fiber_ref& target) { target.schedule(std::make_unique<int>(3)); });
    replaced([](const fiber_ref& target) { target.schedule(std::string(100, 'x')); });
  });
}

TEST_CASE("fiber::raise() destroys a pending token from another thread", "[token][thread]") {
  const auto replaced = [](auto give) {
    testing::run_here([&] {
      auto suspended_fiber = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      std::thread remote([&] {  // both are there before the fiber's thread looks
        give(suspended_fiber);
        suspended_fiber.raise(oops());
      });
      remote.join();
      CHECK(suspended_fiber.await());
    });
  };
  replaced([](const fiber_ref& target) { target.schedule(); });
  replaced([](const fiber_ref& target) { target.schedule(3L); });
  replaced([](const fiber_ref& target) { target.schedule(std::make_unique<int>(3)); });
}
