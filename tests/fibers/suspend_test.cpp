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

TEST_CASE("a suspended fiber runs only when it has been scheduled", "[order]") {
  run([] {
    numbers seen;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(spin([&seen, i] {
        suspend();
        seen.push_back(i);
      }));
    }
    snooze();
    CHECK(fibers[0].schedule());
    CHECK(seen.empty());
    snooze();
    CHECK(seen == numbers{0});
    CHECK(fibers[0].state() == fiber_state::dead);
    fibers[1].schedule();
    fibers[2].schedule();
    snooze();
    CHECK(seen == numbers{0, 1, 2});
  });
}

TEST_CASE("scheduling is not switching, and keeps the order of the calls", "[order]") {
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

TEST_CASE("a second schedule replaces the value, not the place in the queue", "[token]") {
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

TEST_CASE("a fiber scheduled many times runs once", "[token]") {
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

TEST_CASE("a token given before suspend is kept for it, the last one alone", "[token]") {
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

TEST_CASE("an exception takes the place of a token that was not yet seen", "[token]") {
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

TEST_CASE("suspend is a switchpoint also when its token is there already", "[token]") {
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

TEST_CASE("a token of another type is a logic error in suspend, and nothing more", "[token]") {
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

TEST_CASE("a token may be move-only, and larger than its place", "[token]") {
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

TEST_CASE("every token is destroyed once, taken or not", "[token]") {
  int alive = 0;
  run([&] {
    auto taker = spin([] {
      const auto taken = suspend<counted>();
      return *taken.alive;
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

TEST_CASE("a token never wakes a sleep; it waits for the next suspend", "[token]") {
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

TEST_CASE("a token never wakes a read", "[token]") {
  run([] {
    auto ends = testing::make_pipe();
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      const std::size_t got = io::read(ends.first(), buffer);
      return std::pair(got, suspend<int>());
    });
    snooze();
    CHECK(f.schedule(5));
    sleep_for(2ms);
    CHECK(f.state() == fiber_state::waiting);
    io::write(ends.second(), testing::bytes_of("abc"));
    CHECK(f.await() == std::pair(std::size_t{3}, 5));
  });
}

TEST_CASE("a token never wakes an await, a group or a suspend_with", "[token]") {
  run([] {
    auto slow = spin([] { sleep_for(5ms); });
    auto awaiting = spin([&] {
      slow.await();
      CHECK(slow.state() == fiber_state::dead);
      return suspend<int>();
    });
    auto grouping = spin([] {
      bool over = false;
      group one;
      one.spin([&] {
        sleep_for(5ms);
        over = true;
      });
      one.await_all();
      CHECK(over);
      return suspend<int>();
    });
    std::optional<resumer<int>> kept;
    auto resumed = spin([&] {
      const int given = suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); });
      return 10 * given + suspend<int>();
    });
    snooze();
    for (const fiber_ref& each : {fiber_ref(awaiting), fiber_ref(grouping), fiber_ref(resumed)}) {
      CHECK(each.schedule(1));
      CHECK(each.state() == fiber_state::waiting);
    }
    (*kept)(4);
    CHECK(awaiting.await() == 1);
    CHECK(grouping.await() == 1);
    CHECK(resumed.await() == 41);
  });
}

TEST_CASE("scheduling oneself is a logic error, before anything has happened", "[token]") {
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

TEST_CASE("scheduling a dead fiber resumes nobody", "[token]") {
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

TEST_CASE("a token that an exception has replaced is gone, whatever its type", "[token]") {
  run([] {
    const auto replaced = [](auto give) {
      auto waiting = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      give(waiting);
      waiting.raise(oops());
      CHECK(waiting.await());
    };
    replaced([](const fiber_ref& to) { to.schedule(); });
    replaced([](const fiber_ref& to) { to.schedule(3); });
    replaced([](const fiber_ref& to) { to.schedule(std::array<int, 100>{}); });
    replaced([](const fiber_ref& to) { to.schedule(std::make_unique<int>(3)); });
    replaced([](const fiber_ref& to) { to.schedule(std::string(100, 'x')); });
  });
}

TEST_CASE("a token from another thread that an exception has replaced is gone", "[token][thread]") {
  const auto replaced = [](auto give) {
    testing::run_here([&] {
      auto waiting = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      std::thread other([&] {  // both are there before the fiber's thread looks
        give(waiting);
        waiting.raise(oops());
      });
      other.join();
      CHECK(waiting.await());
    });
  };
  replaced([](const fiber_ref& to) { to.schedule(); });
  replaced([](const fiber_ref& to) { to.schedule(3L); });
  replaced([](const fiber_ref& to) { to.schedule(std::make_unique<int>(3)); });
}
