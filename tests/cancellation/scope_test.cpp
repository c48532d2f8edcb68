// SPDX-License-Identifier: MIT
// Parts of a body that end when their time is up.
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "catch.hpp"
#include "compute.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::compute_until;
using testing::throws_cancelled;
using testing::words;

namespace {

struct some_error : std::runtime_error {
  some_error() : std::runtime_error("some error") {}
};

void busy(std::chrono::microseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("a body that ends in time keeps what it returns", "[scope]") {
  run([] {
    CHECK(move_on_after(1h, [] { sleep_for(1ms); }));
    const std::optional<int> got = move_on_after(1h, [] {
      snooze();
      return 5;
    });
    CHECK(got == 5);
    const auto pointer = move_on_after(1h, [] { return std::make_unique<int>(6); });
    REQUIRE(pointer);
    CHECK(**pointer == 6);
  });
}

TEST_CASE("a body whose time is up is left, and its result is empty", "[scope]") {
  run([] {
    const auto start = clock::now();
    CHECK(!move_on_after(3ms, [] { sleep(); }));
    CHECK(clock::now() - start >= 3ms);
    CHECK(!move_on_after(1ms, [] {
      sleep_for(1h);
      return 5;
    }));
    CHECK(!move_on_after(1ms, [] { return suspend<int>(); }));
    const auto nested = move_on_after(1ms, []() -> std::optional<int> {
      sleep_for(1h);
      return 5;
    });
    CHECK(!nested.has_value());
    const auto empty = move_on_after(1h, [] { return std::optional<int>(); });
    REQUIRE(empty.has_value());
    CHECK(!empty->has_value());
  });
}

TEST_CASE("every wait is left when its time is up", "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    auto idle = spin([] { sleep(); });
    std::optional<resumer<void>> kept;
    CHECK(!move_on_after(1ms, [] { sleep(); }));
    CHECK(!move_on_after(1ms, [&] { idle.await(); }));
    CHECK(!move_on_after(1ms, [&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
    }));
    CHECK(!move_on_after(1ms, [&] { io::wait_fd(ends.first(), 1); }));
    CHECK(!move_on_after(
        1ms, [&] { suspend_with([&](resumer<void> r) { kept.emplace(std::move(r)); }); }));
    CHECK(!move_on_after(1ms, [] {
      group voices;
      voices.spin([] { sleep(); });
      voices.await_all();
    }));
    CHECK(idle.state() == fiber_state::waiting);
  });
}

TEST_CASE("what the body throws passes, and its deadline with it", "[scope]") {
  run([] {
    CHECK_THROWS_AS(move_on_after(2ms, [] { throw some_error(); }), some_error);
    sleep_for(5ms);
  });
}

TEST_CASE("locals of a body that is left are destroyed, in order", "[scope]") {
  run([] {
    words trace;
    struct note {
      words& to;
      const char* word;
      ~note() { to.emplace_back(word); }
    };
    CHECK(!move_on_after(1ms, [&] {
      const note outer{trace, "outer"};
      const note inner{trace, "inner"};
      sleep();
    }));
    CHECK(trace == words{"inner", "outer"});
  });
}

TEST_CASE("an inner deadline ends the inner body alone", "[scope]") {
  run([] {
    words trace;
    const bool outer = move_on_after(1h, [&] {
      CHECK(!move_on_after(1ms, [] { sleep(); }));
      trace.emplace_back("between");
      sleep_for(1ms);
      trace.emplace_back("after");
    });
    CHECK(outer);
    CHECK(trace == words{"between", "after"});
  });
}

TEST_CASE("an outer deadline passes an inner one", "[scope]") {
  run([] {
    bool between = false;
    const bool outer = move_on_after(1ms, [&] {
      move_on_after(1h, [] { sleep(); });
      between = true;
    });
    CHECK(!outer);
    CHECK(!between);
  });
}

TEST_CASE("of two deadlines that have both passed the outer speaks", "[scope]") {
  run([] {
    bool between = false;
    const bool outer = move_on_after(1ms, [&] {
      move_on_after(2ms, [] {
        compute_until(clock::now() + 4ms);
        snooze();
        sleep();
      });
      between = true;
      sleep();
    });
    CHECK(!outer);
    CHECK(!between);
    CHECK(!move_on_after(1ms, [] { move_on_after(1ms, [] { sleep(); }); }));
  });
}

TEST_CASE("deadlines nested ten deep each end at their own place", "[scope]") {
  run([] {
    for (int expiring = 0; expiring < 10; ++expiring) {
      int left_by = -1;
      struct tower {
        int expiring;
        int& left_by;
        void build(int level) const {
          if (level == 10) sleep();
          const bool done = move_on_after(level == expiring ? 1ms : 1h, [&] { build(level + 1); });
          if (!done) left_by = level;
        }
      };
      tower{expiring, left_by}.build(0);
      CHECK(left_by == expiring);
    }
  });
}

TEST_CASE("an inner handler for failures lets an outer deadline pass", "[scope]") {
  run([] {
    bool handled = false;
    CHECK(!move_on_after(1ms, [&] {
      try {
        sleep();
      } catch (const std::exception&) {
        handled = true;
      }
    }));
    CHECK(!handled);
  });
}

TEST_CASE("an inner deadline does not take an outer cancellation for its own", "[scope]") {
  run([] {
    bool went_on = false;
    auto f = spin([&] {
      move_on_after(1h, [] { sleep(); });
      went_on = true;
    });
    snooze();
    f.cancel("from outside");
    try {
      f.await();
    } catch (const fiber_cancelled& how) {
      CHECK(std::string(how.reason()) == "from outside");
    }
    CHECK(f.state() == fiber_state::dead);
    CHECK(!went_on);
  });
}

TEST_CASE("nothing but its own deadline is an expiry: a child's cancellation is none", "[scope]") {
  run([] {
    auto child = spin([] { sleep(); });
    snooze();
    child.cancel();
    CHECK_THROWS_AS(move_on_after(1h, [&] { child.await(); }), fiber_cancelled);
  });
}

TEST_CASE("a deadline of one fiber leaves others alone", "[scope]") {
  run([] {
    words trace;
    auto a = spin([&] {
      if (!move_on_after(1ms, [] { sleep(); })) trace.emplace_back("a left");
    });
    auto b = spin([&] {
      if (move_on_after(1h, [] { sleep_for(3ms); })) trace.emplace_back("b done");
    });
    a.await();
    b.await();
    CHECK(trace == words{"a left", "b done"});
  });
}

TEST_CASE("a body that has returned has returned, however late", "[scope]") {
  run([] {
    const auto got = move_on_after(1ms, [] {
      const auto end = std::chrono::steady_clock::now() + 2ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      return 3;
    });
    CHECK(got == 3);
    sleep_for(3ms);
  });
}

TEST_CASE("a deadline that was left never fires, though it was due before", "[scope]") {
  run([] {
    group pending;
    pending.spin([] { sleep(); });
    pending.spin([] {
      for (;;) sleep_for(1h);
    });
    for (int round = 0; round < 50; ++round) {
      const auto got = move_on_after(1ms, [] {
        compute_until(clock::now() + 2ms);
        snooze();
        return 7;
      });
      CHECK((!got || *got == 7));
      snooze();
      sleep_for(0ms);
    }
  });
}

TEST_CASE("a loop that only snoozes is left when its time is up", "[scope]") {
  run([] {
    const auto start = std::chrono::steady_clock::now();
    const bool done = move_on_after(2ms, [&] {
      while (std::chrono::steady_clock::now() - start < 5s) snooze();
    });
    CHECK(!done);
  });
}

TEST_CASE("a suspend that only a deadline can end waits for that", "[scope]") {
  run([] {
    const auto start = clock::now();
    const bool done = move_on_after(5ms, [] { suspend(); });
    CHECK(!done);
    CHECK(clock::now() - start >= 5ms);
  });
}

TEST_CASE("no time at all ends a body at the first wait, not before", "[scope]") {
  run([] {
    for (const clock::duration none : {clock::duration(0), clock::duration(-1s)}) {
      bool began = false;
      CHECK(!move_on_after(none, [&] {
        began = true;
        sleep_for(1ms);
      }));
      CHECK(began);
      CHECK(move_on_after(none, [] { return 4; }) == 4);
    }
    snooze();
    sleep_for(1ms);
  });
}

TEST_CASE("a deadline of centuries is none", "[scope]") {
  run([] {
    CHECK(move_on_after(clock::duration::max(), [] { sleep_for(1ms); }));
    CHECK(!move_on_after(1ms, [] { move_on_after(clock::duration::max(), [] { sleep(); }); }));
  });
}

TEST_CASE("a hundred deadlines in a row end a hundred bodies", "[scope]") {
  run([] {
    int left = 0;
    for (int i = 0; i < 100; ++i) {
      if (!move_on_after(100us, [] { sleep(); })) ++left;
    }
    CHECK(left == 100);
  });
}

TEST_CASE("thousands of deadlines that were left hold nothing up", "[scope]") {
  run([] {
    const auto scopes = testing::scaled(100'000, 20'000);
    for (std::size_t i = 0; i < scopes; ++i) {
      move_on_after(1h, [&] {
        if (i % 100 == 0) snooze();
      });
    }
    const auto start = clock::now();
    suspend();
    CHECK(clock::now() - start < 1h);
    CHECK(!move_on_after(1ms, [] { sleep(); }));
  });
}

TEST_CASE("thousands of deadlines of many fibers at once hold nothing up", "[scope]") {
  run([] {
    const auto fibers = testing::scaled(5'000, 1'000);
    std::size_t in_time = 0;
    std::size_t left = 0;
    for (std::size_t i = 0; i < fibers; ++i) {
      spin([&, i] {
        const bool done = move_on_after(i % 2 == 0 ? clock::duration(1h) : 1ms, [i] {
          if (i % 2 == 0) {
            sleep_for(std::chrono::microseconds(i % 97));
          } else {
            sleep();
          }
        });
        ++(done ? in_time : left);
      });
    }
    const auto start = clock::now();
    suspend();
    CHECK(in_time == (fibers + 1) / 2);
    CHECK(left == fibers / 2);
    CHECK(clock::now() - start < 1h);
  });
}

TEST_CASE("a read at its deadline has read or has not, never both", "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    const auto rounds = testing::scaled(10'000, 1'000);
    std::size_t written = 0;
    std::size_t read = 0;
    auto writer = spin([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        sleep_for(20us);
        io::write(ends.second(), testing::bytes_of("x"));
        ++written;
      }
    });
    while (writer.state() != fiber_state::dead) {
      move_on_after(20us, [&] {
        std::array<std::byte, 1> buffer;
        read += io::read(ends.first(), buffer);
      });
    }
    std::array<std::byte, 4096> rest;
    ends.close_second();
    for (std::size_t got = 1; got > 0;) {
      got = io::read(ends.first(), rest);
      read += got;
    }
    CHECK(read == written);
    CHECK(written == rounds);
  });
}

TEST_CASE("a readiness at its deadline is ready or late, and never comes later", "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    const auto rounds = testing::scaled(10'000, 500);
    std::size_t ready = 0;
    std::size_t late = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto when = clock::now() + 50us;
      auto writer = spin([&ends, when] {
        sleep_until(when);
        io::write(ends.second(), testing::bytes_of("x"));
      });
      const auto events =
          move_on_after(when - clock::now(), [&] { return io::wait_fd(ends.first(), 1); });
      ++(events ? ready : late);
      writer.await();
      std::array<std::byte, 8> buffer;
      REQUIRE(io::read(ends.first(), buffer) == 1);
      snooze();
    }
    CHECK(ready + late == rounds);
    suspend();
  });
}

TEST_CASE("a timeout built of a fiber that raises works, too", "[scope]") {
  run([] {
    struct late : std::runtime_error {
      late() : std::runtime_error("late") {}
    };
    const auto limited = [](clock::duration limit, auto body) {
      auto timer = spin([limit, owner = current()] {
        sleep_for(limit);
        owner.raise(late());
      });
      body();
      timer.cancel();
    };
    CHECK_THROWS_AS(limited(1ms, [] { sleep(); }), late);
    CHECK_NOTHROW(limited(5ms, [] { sleep_for(1ms); }));
    sleep_for(10ms);
  });
}

TEST_CASE("a scope that has ended ends every further wait in it, and none behind it", "[scope]") {
  run([] {
    int told = 0;
    const bool returned = move_on_after(10ms, [&] {
      for (int i = 0; i < 3; ++i) told += throws_cancelled([] { sleep(); }) ? 1 : 0;
    });
    CHECK(returned);  // what swallows it and returns has returned
    CHECK(told == 3);
    CHECK_FALSE(throws_cancelled([] { sleep_for(1ms); }));
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("checkpoint and calls on descriptors know of a limit that has passed", "[scope]") {
  if (testing::on_sim()) return;  // virtual time does not pass while a fiber computes
  run([] {
    auto ends = testing::make_socket_pair();
    int passed = 0;
    for (int round = 0; round < 100; ++round) {
      passed += move_on_after(1us, [] {
        busy(20us);
        checkpoint();
      });
      passed += move_on_after(1us, [&] {
        busy(20us);
        std::byte one{};
        io::send(ends.first(), {&one, 1});
      });
      std::error_code error;
      passed += move_on_after(1us, [&] {
        busy(20us);
        std::byte one{};
        io::send(ends.first(), {&one, 1}, 0, error);
        CHECK(error == std::errc::operation_canceled);
        checkpoint();
      });
    }
    CHECK(passed == 0);
    CHECK(testing::take_all(ends.second()).empty());
  });
}

TEST_CASE("of limits that have passed the outermost speaks, and none is early", "[scope]") {
  run([] {
    bool inner_returned = false;
    const bool outer_returned = move_on_after(2ms, [&] {
      inner_returned = move_on_after(1h, [] {
        const auto begin = clock::now();
        for (;;) {
          checkpoint();
          if (testing::on_sim()) sleep_for(100us);
          REQUIRE(clock::now() - begin < 1min);
        }
      });
    });
    CHECK_FALSE(outer_returned);
    CHECK_FALSE(inner_returned);
    CHECK(move_on_after(1h, [] { checkpoint(); }));
  });
}

// The last: a backend that takes a deadline long past for one far ahead never returns.

TEST_CASE("a deadline in the remotest past has passed", "[scope][past]") {
  run([] { CHECK(!move_on_after(clock::duration::min(), [] { sleep(); })); });
}
